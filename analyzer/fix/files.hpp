#pragma once

#include <string>
#include <string_view>

#include "analyzer/fix/edits.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Replaces a file that still holds `before` by `after`, whole or not at all; the mode stays, a symbolic link stays
// one. An Error, and the file as it was, when it changed since or cannot be written.
Status replace_unchanged(const std::string& path, std::string_view before, std::string_view after);

// The change as `diff -u` prints it, for `patch -p1` and `git apply`; `name` is the path it shows.
Result<std::string> unified_diff(const FixedFile& file, const std::string& name);

}  // namespace mp::lint
