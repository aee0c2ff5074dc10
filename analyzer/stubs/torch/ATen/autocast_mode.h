// The state of autocast: what regions are made of. Both generations of the interface.
#pragma once

#include "mp_tensor.h"

namespace at {
namespace autocast {

// per device, before 2.4 and still there
bool is_enabled();
void set_enabled(bool);
ScalarType get_autocast_gpu_dtype();
void set_autocast_gpu_dtype(ScalarType);
#define MP_AUTOCAST_DEVICE(d) \
    bool is_##d##_enabled(); \
    void set_##d##_enabled(bool); \
    ScalarType get_autocast_##d##_dtype(); \
    void set_autocast_##d##_dtype(ScalarType);
MP_AUTOCAST_DEVICE(cpu) MP_AUTOCAST_DEVICE(xpu) MP_AUTOCAST_DEVICE(hpu) MP_AUTOCAST_DEVICE(ipu)
MP_AUTOCAST_DEVICE(xla) MP_AUTOCAST_DEVICE(mps) MP_AUTOCAST_DEVICE(privateuseone)
#undef MP_AUTOCAST_DEVICE
// by device, since 2.4
bool is_autocast_enabled(DeviceType);
void set_autocast_enabled(DeviceType, bool);
ScalarType get_autocast_dtype(DeviceType);
void set_autocast_dtype(DeviceType, ScalarType);

void clear_cache();
int increment_nesting();
int decrement_nesting();
bool is_autocast_cache_enabled();
void set_autocast_cache_enabled(bool);
bool is_eligible(const Tensor&, DeviceType = DeviceType::CUDA);
ScalarType prioritize(ScalarType, const Tensor&, DeviceType = DeviceType::CUDA);
ScalarType promote_type(ScalarType, DeviceType, const Tensor&);
Tensor cached_cast(ScalarType, const Tensor&, DeviceType = DeviceType::CUDA);
std::optional<Tensor> cached_cast(ScalarType, const std::optional<Tensor>&, DeviceType = DeviceType::CUDA);
std::vector<Tensor> cached_cast(ScalarType, const TensorList&, DeviceType = DeviceType::CUDA);

}  // namespace autocast
}  // namespace at
