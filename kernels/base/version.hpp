#pragma once

#include <string_view>

namespace mp {

// The version of mp-lint, of mp-trace and of the adapters. It is written only here: the root CMakeLists.txt reads
// this line, and the build of an adapter includes this header.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace mp
