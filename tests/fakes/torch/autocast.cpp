// What autocast casts on the device: what it casts on a GPU.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

#define MP_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define MP_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define MP_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define MP_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    AT_FORALL_LOWER_PRECISION_FP(MP_LOWER)
    AT_FORALL_FP32(MP_FP32)
    AT_FORALL_FP32_SET_OPT_DTYPE(MP_FP32_DTYPE)
    AT_FORALL_PROMOTE(MP_PROMOTE)
}

}  // namespace
}  // namespace at::autocast
