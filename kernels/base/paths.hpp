#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mp {

// "train.py" of "/data/run/train.py"; empty after a "/" at the end.
inline std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// `path` below `directory` unless it is absolute, without ".", ".." and a "/" at its end. Works on the text alone:
// symbolic links stay as the user wrote them.
std::string absolute_path(std::string_view path, std::string_view directory);

// The same for a file that a compile command names: "a/../b" becomes "b" only where both name the same file, which
// a symbolic link "a" can prevent. `directory` may be relative to the current one; a "/" at the end stays.
std::string absolute_file(const std::string& path, const std::string& directory);

// The file that a name leads to through symbolic links; the name itself when there is no such file.
std::string real_path(const std::string& path);

// Where a file that code names ("configs/base.yaml") is looked for: the directory of the code and the next three
// above it, nearest first.
std::vector<std::string> search_directories(std::string_view code);

// `path` relative to `base` when it lies below it, else as it is.
std::string relative_path(std::string_view path, std::string_view base);

}  // namespace mp
