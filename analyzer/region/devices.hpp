#pragma once

// The kinds of region that have their own state.

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/numerics/dtype.hpp"

namespace mp::lint {

// Index into kDeviceNames; 0 is "unknown".
using Device = std::uint8_t;

// Autocast by device; then hmp.convert and apex's O1, which are states of the process; last
// "no_grad": gradients are not recorded.
inline constexpr std::array<std::string_view, 13> kDeviceNames{
    "", "cuda", "cpu", "xpu", "hpu", "ipu", "xla", "mps", "privateuseone", "other", "hmp", "apex", "no_grad"};
inline constexpr std::size_t kDevices = kDeviceNames.size();
inline constexpr Device kUnknownDevice = 0;
inline constexpr Device kCuda = 1;
inline constexpr Device kHmp = 10;
inline constexpr Device kApex = 11;
inline constexpr Device kNoGrad = 12;

// kUnknownDevice for any other name.
Device device_named(std::string_view name);

// The dtype of a region that sets none: PyTorch's defaults per device.
DType default_dtype(Device);

}  // namespace mp::lint
