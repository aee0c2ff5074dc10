#pragma once

#include <cstdint>

#include "instrument/torch/compat.hpp"
#include "kernels/cpu/measure.hpp"
#include "kernels/numerics/dtype.hpp"

namespace mp::twin {

// Properties of one tensor. These functions keep no state and are safe from any thread.

DType dtype_of(at::ScalarType);
// The dtype of the twin's value: fp32, fp64, or complex of these; integers keep their dtype.
at::ScalarType twin_dtype(at::ScalarType real);
// Float, complex or float8.
bool carries_floats(const at::Tensor&);
// Whether the twin can have a shadow of this tensor at all: strided memory of its own, no quantisation.
bool has_plain_memory(const at::Tensor&);
// Whether the twin follows it by the memory of its values: a sparse tensor of indices and floats.
bool has_sparse_floats(const at::Tensor&);
// Whether the strides of tensors of one shape differ in a dimension that has several elements.
bool has_other_order(const at::Tensor&, const at::Tensor&);
// 16 bits or less.
bool is_low_precision(at::ScalarType);
// The memory of a tensor for the measuring kernels. False: no float format, or too many dimensions.
bool view_of_memory(const at::Tensor&, cpu::TensorView&);
// The same for the kernels of the CPU. False also for a tensor that is elsewhere.
bool view_for_kernels(const at::Tensor&, cpu::TensorView&);
// Whether any value is NaN or infinite, as fast as memory is read.
bool any_nonfinite(const at::Tensor&);
// A hash of 61 words spread over the storage; a constant if the memory is not on the CPU. It detects writes to the
// whole tensor: a write to other words only is not seen.
std::uint64_t fingerprint_of(const at::Tensor&);
std::uint64_t bytes_of(const at::Tensor&);
// Keeps the memory, once it is freed, until the device's current stream has done what it has to do by then.
void record_use(const c10::Storage&);
// The value of a tensor with one element. Called under TwinScope or Internal.
double scalar_of(const at::Tensor&);

// Every tensor inside an argument or result, lists of lists included.
template <typename Visit>
void for_each_tensor(const IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isTensorList()) {
        const c10::List<at::Tensor> list = value.toTensorList();
        for (std::size_t i = 0; i < list.size(); ++i) {
            const at::Tensor t = list.get(i);
            if (t.defined()) visit(t);
        }
    } else if (value.isList()) {
        const c10::List<IValue> list = value.toList();
        for (std::size_t i = 0; i < list.size(); ++i) for_each_tensor(list.get(i), visit);
    }
}

}  // namespace mp::twin
