#pragma once

#include "instrument/cuda/abi.hpp"
#include "kernels/numerics/dtype.hpp"

// The types of NVIDIA's libraries in the words of this product. A type that is not a float of theirs is unknown.

namespace mp::raw {

constexpr DType dtype_of_cuda(int type) {
    switch (type) {
        case abi::kR32F:
            return DType::fp32;
        case abi::kR64F:
            return DType::fp64;
        case abi::kR16F:
            return DType::fp16;
        case abi::kR16BF:
            return DType::bf16;
        case abi::kR8FE4M3:
            return DType::e4m3;
        case abi::kR8FE5M2:
            return DType::e5m2;
        default:
            return DType::unknown;
    }
}

constexpr DType dtype_of_nccl(int type) {
    switch (type) {
        case abi::kNcclFloat16:
            return DType::fp16;
        case abi::kNcclFloat32:
            return DType::fp32;
        case abi::kNcclFloat64:
            return DType::fp64;
        case abi::kNcclBfloat16:
            return DType::bf16;
        case abi::kNcclE4M3:
            return DType::e4m3;
        case abi::kNcclE5M2:
            return DType::e5m2;
        default:
            return DType::unknown;
    }
}

constexpr bool is_half_compute(int compute) {
    return compute == abi::kCompute16F || compute == abi::kCompute16FPedantic;
}

// fp32 inputs are rounded to fewer bits first.
constexpr bool is_fast_compute(int compute) {
    return compute == abi::kCompute32FFast16F || compute == abi::kCompute32FFast16BF ||
           compute == abi::kCompute32FFastTF32;
}

// Whether the host's scale factor of a computation is 0. What cannot be read counts as not 0.
inline bool is_zero(const void* factor, int compute) {
    if (!factor) return true;
    if (is_half_compute(compute)) return (*static_cast<const unsigned short*>(factor) & 0x7FFF) == 0;
    if (compute == abi::kCompute32F || compute == abi::kCompute32FPedantic || is_fast_compute(compute))
        return *static_cast<const float*>(factor) == 0;
    return false;
}

}  // namespace mp::raw
