#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/base/files.hpp"

namespace mp::lint {

// Whether a header that is not named .cuh needs CUDA: it defines kernels or device functions.
inline bool holds_device_code(const std::string& header) {
    constexpr std::array<std::string_view, 4> kExtensions{".h", ".hh", ".hpp", ".hxx"};
    constexpr std::uint64_t kMaxBytes = 4u << 20;
    const std::string extension = std::filesystem::path(header).extension().string();
    if (std::ranges::find(kExtensions, extension) == kExtensions.end()) return false;
    std::string text;
    return read_file(header, text, kMaxBytes) &&
           (text.find("__global__") != std::string::npos || text.find("__device__") != std::string::npos);
}

}  // namespace mp::lint
