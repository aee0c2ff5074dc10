#pragma once

// Which GPUs the documents and scripts of a project name: those that it is made for.

#include <cstdint>
#include <string_view>
#include <vector>

namespace mp::lint {

// Marks among the options that texts give. No option has a blank in its name.
constexpr std::string_view kNamesDeviceWithBf16 = "a device with bf16";
constexpr std::string_view kNamesOlderDevice = "a device without bf16";

// Hashes of the marks for which the text has a name: A100, H100, RTX 4090; V100, T4, Colab.
std::vector<std::uint64_t> named_devices(std::string_view text);

}  // namespace mp::lint
