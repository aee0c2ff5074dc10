#pragma once

#include <string>
#include <string_view>

#include "analyzer/fix/edits.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Replaces the content of a file by `after`, if the file still contains `before`. Readers see the old or the new
// text. Keeps the mode and symbolic links. Returns an Error and leaves the file unchanged if it was modified or
// cannot be written.
Status replace_unchanged(const std::string& path, std::string_view before, std::string_view after);

// The change in the format of `diff -u`, for `patch -p1` and `git apply`; `name` is the path in its header.
Result<std::string> unified_diff(const FixedFile& file, const std::string& name);

}  // namespace mp::lint
