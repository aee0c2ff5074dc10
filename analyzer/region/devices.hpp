#pragma once

// The kinds of region that have a state of their own.

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/numerics/dtype.hpp"

namespace mp::lint {

// Index into the names; 0 is "not known which".
using Device = std::uint8_t;

// Autocast by device; then hmp.convert and apex's O1, which are states of the process; last, the one in
// which gradients are not recorded.
inline constexpr std::array<std::string_view, 13> kDeviceNames{
    "", "cuda", "cpu", "xpu", "hpu", "ipu", "xla", "mps", "privateuseone", "other", "hmp", "apex", "no_grad"};
inline constexpr std::size_t kDevices = kDeviceNames.size();
inline constexpr Device kUnknownDevice = 0;
inline constexpr Device kCuda = 1;
inline constexpr Device kHmp = 10;
inline constexpr Device kApex = 11;
inline constexpr Device kNoGrad = 12;

// kUnknownDevice when there is no such device.
Device device_named(std::string_view name);

// What a region computes in when nobody chose: PyTorch's defaults per device.
DType default_dtype(Device);

}  // namespace mp::lint
