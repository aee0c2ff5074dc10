#pragma once

#include <cstdlib>
#include <cstring>
#include <optional>

#include "instrument/cuda/abi.hpp"
#include "kernels/numerics/convert.hpp"
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

constexpr bool is_double_compute(int compute) {
    return compute == abi::kCompute64F || compute == abi::kCompute64FPedantic ||
           compute == abi::kCompute64FEmulated;
}

// fp32 inputs are rounded to fewer bits first. kCompute32FEmulated is not among them: it splits each input into three
// bf16 values, which have the 24 bits of fp32.
constexpr bool is_fast_compute(int compute) {
    return compute == abi::kCompute32FFast16F || compute == abi::kCompute32FFast16BF ||
           compute == abi::kCompute32FFastTF32;
}

// Whether a computation rounds its fp32 inputs first. NVIDIA_TF32_OVERRIDE=0 switches TF32 off in all libraries. The
// math mode of a handle decides where the compute type leaves it open: that of tensor operations is fp16.
inline bool rounds_inputs(int compute, int math_mode = 0) {
    static const bool off = [] {
        const char* const text = std::getenv("NVIDIA_TF32_OVERRIDE");
        return text && std::strcmp(text, "0") == 0;
    }();
    const int math = compute == abi::kCompute32F ? math_mode & abi::kMathMask : 0;
    const bool tf32 = compute == abi::kCompute32FFastTF32 || math == abi::kMathTF32;
    return tf32 ? !off : is_fast_compute(compute) || math == abi::kMathTensorOp;
}

// A host's scale factor of a computation; none where it cannot be read.
inline std::optional<double> factor_of(const void* factor, int compute) {
    if (!factor) return 0;
    if (is_half_compute(compute))
        return decode<DType::fp16>(*static_cast<const Pattern<DType::fp16>*>(factor));
    if (compute == abi::kCompute32F || compute == abi::kCompute32FPedantic ||
        compute == abi::kCompute32FEmulated || is_fast_compute(compute))
        return static_cast<double>(*static_cast<const float*>(factor));
    return std::nullopt;
}

}  // namespace mp::raw
