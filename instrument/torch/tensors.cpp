#include "instrument/torch/tensors.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

#include "instrument/torch/test_hooks.hpp"

namespace mp::twin {

DType dtype_of(at::ScalarType type) {
    switch (type) {
        case at::kDouble:
            return DType::fp64;
        case at::kFloat:
            return DType::fp32;
        case at::kHalf:
            return DType::fp16;
        case at::kBFloat16:
            return DType::bf16;
        case at::kLong:
            return DType::int64;
        case at::kInt:
            return DType::int32;
        case at::kShort:
            return DType::int16;
        case at::kChar:
            return DType::int8;
        case at::kByte:
            return DType::uint8;
        case at::kBool:
            return DType::boolean;
#if MP_TORCH_AT_LEAST(2, 4)
        case at::kFloat8_e4m3fn:
            return DType::e4m3;
        case at::kFloat8_e5m2:
            return DType::e5m2;
#endif
        default:
            return DType::unknown;
    }
}

at::ScalarType twin_dtype(at::ScalarType real) {
    switch (real) {
        case at::kHalf:
        case at::kBFloat16:
            return at::kFloat;
        case at::kComplexHalf:
            return at::kComplexFloat;
        default:
            return is_float8(real) ? at::kFloat : real;
    }
}

bool carries_floats(const at::Tensor& t) {
    return c10::isFloatingType(t.scalar_type()) || is_float8(t.scalar_type()) ||
           (c10::isComplexType(t.scalar_type()) && !rule_disabled("complex"));
}

bool has_plain_memory(const at::Tensor& t) {
    return t.defined() && t.layout() == at::kStrided && t.has_storage() && !t.is_quantized() &&
           !t.is_meta() && !t.is_mkldnn() && !t._is_zerotensor() &&
           (t.numel() == 0 ||
            t.storage().data() != nullptr);  // the memory of a sharded parameter is freed and allocated again
}

bool has_sparse_floats(const at::Tensor& t) {
    return t.defined() && t.layout() == at::kSparse && carries_floats(t) && !t.is_meta() &&
           has_plain_memory(t._values()) && !rule_disabled("sparse");
}

bool has_other_order(const at::Tensor& a, const at::Tensor& b) {
    for (std::int64_t d = 0; d < a.dim(); ++d)
        if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return true;
    return false;
}

bool is_low_precision(at::ScalarType type) {
    return type == at::kHalf || type == at::kBFloat16 || is_float8(type);
}

bool view_of_memory(const at::Tensor& t, cpu::TensorView& view) {
    if (!has_plain_memory(t) || t.is_complex() || t.is_conj() || t.is_neg() || t.dim() > cpu::kMaxDims ||
        !carries_floats(t))
        return false;
    view.data = t.data_ptr();
    view.dtype = dtype_of(t.scalar_type());
    if (view.dtype == DType::unknown) return false;
    view.dims = static_cast<int>(t.dim());
    for (int d = 0; d < view.dims; ++d) {
        view.sizes[d] = t.size(d);
        view.strides[d] = t.stride(d);
    }
    return true;
}

bool view_for_kernels(const at::Tensor& t, cpu::TensorView& view) {
    return t.defined() && t.device().is_cpu() && view_of_memory(t, view);
}

bool any_nonfinite(const at::Tensor& t) {
    cpu::TensorView view;
    return t.numel() > 0 && view_for_kernels(t, view) && cpu::any_nonfinite(view);
}

std::uint64_t fingerprint_of(const at::Tensor& t) {
    constexpr std::size_t kSamples = 61;
    const std::size_t words = t.storage().nbytes() / sizeof(std::uint32_t);
    const char* bytes = static_cast<const char*>(t.storage().data());
    std::uint64_t hash = 1469598103934665603ull;  // FNV-1a over words
    if (!bytes || !t.device().is_cpu()) return hash;
    const std::size_t step = words / kSamples + 1;
    for (std::size_t i = 0; i < words; i += step) {
        std::uint32_t word;
        std::memcpy(&word, bytes + i * sizeof word, sizeof word);
        hash = (hash ^ word) * 1099511628211ull;
    }
    return hash;
}

std::uint64_t bytes_of(const at::Tensor& t) {
    return static_cast<std::uint64_t>(t.numel()) * t.element_size();
}

void record_use(const c10::Storage& memory) {
    if (memory.device().is_cpu()) return;
    const c10::impl::VirtualGuardImpl device(memory.device().type());
    device.recordDataPtrOnStream(memory.data_ptr(), device.getStream(memory.device()));
}

double scalar_of(const at::Tensor& t) { return t.detach().to(at::kDouble).item<double>(); }

}  // namespace mp::twin
