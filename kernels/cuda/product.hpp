#pragma once

#include "kernels/cuda/list.hpp"
#include "kernels/cuda/results.hpp"

// Some elements of a matrix product, computed again: alpha A B + beta C + bias in fp64, in which the products of two
// 16-bit values, and of two fp32, are exact. What each thread does.

namespace mp::cuda {

// The argument of both kernels, by value.
struct ProductArgument {
    SampledProduct product;
    double* expected;   // device memory, one per element
    ProductError* out;  // pinned host memory
};

template <DType D>
MP_HD inline double any_value(const void* data, std::int64_t index) {
    return decode<D>(read<D>(static_cast<const Pattern<D>*>(data) + index));
}

// An element of any format, NaN and infinity too.
MP_HD inline double element(DType dtype, const void* data, std::int64_t index) {
    switch (dtype) {
        case DType::fp64:
            return any_value<DType::fp64>(data, index);
        case DType::fp32:
            return any_value<DType::fp32>(data, index);
        case DType::fp16:
            return any_value<DType::fp16>(data, index);
        default:
            return any_value<DType::bf16>(data, index);
    }
}

struct Position {
    std::int64_t row, column;
};

MP_HD inline Position position_of(const SampledProduct& p, U32 index) {
    return {p.first_row + static_cast<std::int64_t>(index / p.columns) * p.row_step,
            p.first_column + static_cast<std::int64_t>(index % p.columns) * p.column_step};
}

// A thread's part of the sum of one element.
MP_HD inline double terms_of(const SampledProduct& p, Position at, U32 thread) {
    double sum = 0;
    for (std::int64_t k = thread; k < p.depth; k += kThreads)
        sum += element(p.a.dtype, p.a.data, at.row * p.a.row + k * p.a.column) *
               element(p.b.dtype, p.b.data, k * p.b.row + at.column * p.b.column);
    return sum;
}

MP_HD inline double expected_of(const SampledProduct& p, Position at, double sum) {
    double value = p.alpha * sum;
    if (p.c.data) value += p.beta * element(p.c.dtype, p.c.data, at.row * p.c.row + at.column * p.c.column);
    if (p.bias.data) value += element(p.bias.dtype, p.bias.data, at.row * p.bias.row);
    return value;
}

// A thread's part of the comparison.
MP_HD inline ProductError compared(const ProductArgument& argument, U32 thread) {
    const SampledProduct& p = argument.product;
    ProductError error;
    for (U32 i = thread; i < p.rows * p.columns; i += kThreads) {
        const Position at = position_of(p, i);
        const double expected = argument.expected[i];
        if (!(magnitude(expected) <= 1e300)) continue;  // of inputs that are not finite
        const double real = element(p.d.dtype, p.d.data, at.row * p.d.row + at.column * p.d.column);
        ++error.compared;
        if (!(magnitude(real) <= 1e300)) {
            ++error.nonfinite;
            continue;
        }
        error.error_squares += (real - expected) * (real - expected);
        error.squares += expected * expected;
        error.dot += (real - expected) * expected;
    }
    return error;
}

}  // namespace mp::cuda
