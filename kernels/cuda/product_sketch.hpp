#pragma once

#include "kernels/cuda/sketch.hpp"

// A whole matrix product times a vector x of +1 and -1, twice: alpha A (B x) + beta C x + bias sum(x) in fp64 before
// it, D x after it. Of each row, the square of the difference is the sum of the squares of the row's errors, but for a
// part whose mean over the choices of x is 0. Three kernels, whose blocks take kRowsOfSketch rows each. What each
// thread does.

namespace mp::cuda {

// The argument of all three, by value. Of B there are two figures for each of its rows: its product with x, and the sum
// of its squares.
struct ProductSketchArgument {
    SampledProduct product;
    double* inner;          // device memory: of each row of B, then the sum of x
    double* inner_squares;  // device memory: of each row of B
    double* expected;       // device memory: of each row of D
    RowsError* out;         // pinned host memory, one per block
};

// What a row of a matrix adds up to: its elements times those of one vector, their squares times those of another.
struct RowSum {
    double sum = 0, squares = 0;
    MP_HD void add(const RowSum& other) {
        sum += other.sum;
        squares += other.squares;
    }
};

struct Signs {
    U64 seed;
    MP_HD double first(std::int64_t i) const { return is_negative(seed, static_cast<U64>(i)) ? -1 : 1; }
    MP_HD double second(std::int64_t) const { return 1; }
};

struct Inner {
    const double *values, *squares;
    MP_HD double first(std::int64_t i) const { return values[i]; }
    MP_HD double second(std::int64_t i) const { return squares[i]; }
};

// The elements `first`, `first` + `step` ... of a row.
template <class Vectors>
MP_HD inline RowSum part_of_row(const Strided& m, std::int64_t row, std::int64_t columns, U32 first, U32 step,
                                const Vectors& vectors) {
    RowSum part;
    for (std::int64_t j = first; j < columns; j += step) {
        const double x = element(m.dtype, m.data, row * m.row + j * m.column);
        part.sum += x * vectors.first(j);
        part.squares += x * x * vectors.second(j);
    }
    return part;
}

MP_HD inline U32 blocks_of_rows(std::int64_t rows) {
    return static_cast<U32>((rows + kRowsOfSketch - 1) / kRowsOfSketch);
}

// The sum of the first vector, of which each thread takes a part.
MP_HD inline double part_of_signs(const SampledProduct& p, U32 thread) {
    double sum = 0;
    for (std::int64_t j = thread; j < p.all_columns; j += kThreads) sum += Signs{p.seed}.first(j);
    return sum;
}

// Whether the values behind this sum are all finite: other rows are not measured.
MP_HD inline bool is_known(double sum) { return magnitude(sum) <= 1e150; }

// From the sums of a row of A and of C. The terms of D's elements in it go to `error`.
MP_HD inline double expected_of_row(const ProductSketchArgument& a, std::int64_t row, const RowSum& product,
                                    const RowSum& addend, RowsError& error) {
    const SampledProduct& p = a.product;
    double expected = p.alpha * product.sum;
    error.terms = p.alpha * p.alpha * product.squares;
    if (p.c.data) {
        expected += p.beta * addend.sum;
        error.terms += p.beta * p.beta * addend.squares;
    }
    if (p.bias.data) {
        const double bias = element(p.bias.dtype, p.bias.data, row * p.bias.row);
        expected += bias * a.inner[p.depth];
        error.terms += bias * bias * static_cast<double>(p.all_columns);
    }
    if (!is_known(expected)) error.terms = 0;
    return expected;
}

MP_HD inline RowsError error_of_row(double expected, const RowSum& real) {
    RowsError error;
    if (!is_known(expected) || !is_known(real.sum)) return error;
    error.rows = 1;
    error.error_squares = (real.sum - expected) * (real.sum - expected);
    error.squares = real.squares;
    return error;
}

}  // namespace mp::cuda
