#pragma once

#include <string>
#include <string_view>

#include "analyzer/fix/edits.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Puts `after` in the place of a file that still holds `before`: written beside and renamed, so
// that no reader sees half of it; the mode stays, a symbolic link stays one. An Error, and the file
// as it was, when it changed meanwhile or cannot be written.
Status replace_file(const std::string& path, std::string_view before, std::string_view after);

// The change as `diff -u` prints it, for `patch -p1` and `git apply`; `name` is the path it shows.
Result<std::string> unified_diff(const FixedFile& file, const std::string& name);

}  // namespace mp::lint
