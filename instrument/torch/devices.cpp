#include "instrument/torch/devices.hpp"

#include "instrument/torch/cuda_device.hpp"
#include "instrument/torch/test_hooks.hpp"
#ifdef MP_TEST_HOOKS
#include "instrument/torch/late_cpu.hpp"
#endif

namespace mp::twin {

std::unique_ptr<Device> make_device() {
#ifdef MP_TEST_HOOKS
    if (late_steps() > 0) return make_late_cpu(late_steps());
    if (fake_device()) return make_cuda_device(c10::DeviceType::PrivateUse1);
#endif
    return make_cuda_device();
}

}  // namespace mp::twin
