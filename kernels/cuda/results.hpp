#pragma once

#include <cstdint>

#include "kernels/numerics/dtype.hpp"

namespace mp::cuda {

// What first_nonfinite() finds in one tensor. The index counts elements in the order of the dimensions, the last one
// fastest, whatever the strides are.
struct Nonfinite {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t count = 0;      // NaN and infinite elements
    std::uint64_t first = kNone;  // index of the first
};

// A matrix in device memory; strides in elements. No data: it is not a part of the product.
struct Strided {
    const void* data = nullptr;
    std::int64_t row = 0, column = 0;
    DType dtype = DType::unknown;
};

// D = alpha A B + beta C + bias, and which elements of it are to be computed again: `rows` times `columns` of them.
struct SampledProduct {
    static constexpr std::uint32_t kMost = 32;  // rows, and columns
    Strided a, b, c, d;
    Strided bias;  // a column
    std::int64_t depth = 0;
    double alpha = 1, beta = 0;
    std::int64_t first_row = 0, row_step = 1, first_column = 0, column_step = 1;
    std::uint32_t rows = 0, columns = 0;
    std::int64_t all_rows = 0, all_columns = 0;  // of D, for its sketch
    std::uint64_t seed = 0;                      // of the sketch
};

// How far the product's result is from the same product in fp64.
struct ProductError {
    std::uint64_t compared = 0;   // elements whose exact value is finite
    std::uint64_t nonfinite = 0;  // of those, whose result is not; they are not in the sums
    double error_squares = 0;
    double squares = 0;  // of the exact values
    double dot = 0;      // sum of error * exact value
};

// How far some rows of a product's result are from the same product in fp64, from a sketch of all of their elements.
inline constexpr std::int64_t kRowsOfSketch = 32;
struct RowsError {
    std::uint64_t rows = 0;    // with finite elements; the sums below, except `terms`, omit other rows
    double error_squares = 0;  // an estimate without bias
    double squares = 0;        // of the result
    double terms = 0;          // squares of the terms whose sums the elements are
};

// Some blocks of contiguous elements in device memory.
struct SketchedBlocks {
    static constexpr std::uint32_t kMost = 8;
    static constexpr std::uint32_t kLongest = 4096;  // elements of a block
    const void* data = nullptr;
    DType dtype = DType::unknown;
    std::uint32_t count = 0;
    std::uint32_t length = 0;         // of each block
    std::int64_t first[kMost] = {};   // of each block, from `data`
    std::uint64_t place[kMost] = {};  // in the tensor of which `data` may be a part
    std::uint64_t seed = 0;
};

struct Sketch {
    double sum = 0;      // of the elements times +1 or -1
    double squares = 0;  // of the elements
};

}  // namespace mp::cuda
