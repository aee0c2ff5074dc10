#pragma once

#include <cstdint>
#include <optional>

#include "instrument/cuda/abi.hpp"
#include "kernels/numerics/dtype.hpp"

// What the hooks hand on: calls of libraries with exact tensors, as plain data.

namespace mp::raw {

// A batch of matrices in device memory.
struct Matrix {
    const void* data = nullptr;  // null: not there, or known to the device alone (arrays of pointers)
    DType dtype = DType::unknown;
    std::int64_t rows = 0, columns = 0;
    std::int64_t leading = 0;
    std::int64_t batches = 1, stride = 0;  // elements between matrices of the batch
    bool row_major = false;

    std::uint64_t elements() const { return static_cast<std::uint64_t>(rows * columns * batches); }
};

// D = epilogue(alpha A B + beta C + bias)
struct Product {
    static constexpr int kMost = 4;
    const char* op = "";
    Matrix inputs[kMost];  // A, B, and C and the bias where they are read
    int count = 0;
    Matrix result;
    std::uint64_t depth = 0;  // terms of each sum
    bool half_sums = false;   // the terms are added in fp16
    bool split_sums = false;  // parts of the sums are added in the result's 16 bits
    bool loose_sums = false;  // the library may do so, and does not tell
    bool tf32 = false;        // fp32 inputs are rounded to TF32 or 16 bits first
    // As the program asked for it, in cuBLAS's numbers. A mode of the handle may round inputs too: `tf32`.
    int compute = -1;            // cublasComputeType_t; -1: unknown
    std::uint32_t epilogue = 1;  // cublasLtEpilogue_t
    int parts = 1;               // of a split K
    std::uint32_t scheme = 0;    // cublasLtReductionScheme_t, which adds them
    bool has_scales = false;     // factors in device memory, as FP8 has them
    // What it takes to compute an element again. A product with an activation, with scales or with factors
    // in device memory is not computed again.
    bool transposed_a = false, transposed_b = false;
    bool is_plain = false;
    double alpha = 1, beta = 0;
    int c = -1, bias = -1;  // indices in `inputs`
    abi::Stream stream = nullptr;

    // Parts of the sums are added in the format of the result.
    bool splits_in_result() const {
        return parts > 1 && (scheme & (abi::kLtReduceInPlace | abi::kLtReduceInOutputType)) != 0;
    }

    // False: a factor is not known. A C that may be read counts as read.
    bool set_factors(std::optional<double> a, std::optional<double> b) {
        alpha = a.value_or(1);
        beta = b.value_or(1);
        return a && b;
    }
    int read(const Matrix& matrix) {
        if (count < kMost) inputs[count++] = matrix;
        return count - 1;
    }
};

struct Collective {
    const char* op = "";
    const char* reduction = "";
    // What an operator that multiplies first multiplies this rank's elements by.
    std::optional<double> factor = 1;
    DType dtype = DType::unknown;
    const void* send = nullptr;  // null: this rank sends nothing
    const void* receive = nullptr;
    std::uint64_t sent = 0, received = 0;  // elements on this rank
    std::uint64_t width = 0;               // bytes of an element; 0: unknown
    int ranks = 0;                         // of the communicator; 0: unknown
    int rank = -1;                         // in the communicator
    std::uint64_t communicator = 0;        // the same number on all of its ranks; 0: unknown
    std::uint64_t call = 0;                // of the communicator, from 0
    int device = -1;                       // of the rank; -1: unknown
    abi::Stream stream = nullptr;
};

}  // namespace mp::raw
