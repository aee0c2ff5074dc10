#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/numerics/result.hpp"

namespace mp::lint {

bool is_source(std::string_view path);  // .cpp .cc .cxx .cu
bool is_header(std::string_view path);  // .h .hh .hpp .hxx .cuh

struct Discovered {
    std::vector<std::string> named;    // files given by name, in that order
    std::vector<std::string> sources;  // found in directories, sorted
    std::vector<std::string> headers;  // found in directories, sorted
};

// Absolute, without "." and "..": symbolic links stay as the user wrote them.
std::string absolute_path(std::string_view path, std::string_view working_directory);

// Files and directories to paths. Each file once, however many names and links lead to it.
// Directories that are hidden or hold a build are not entered unless named. `excluded` says which
// paths the configuration leaves out (never those named). A name that is neither file nor directory
// is an Error.
Result<Discovered> discover(const std::vector<std::string>& inputs,
                            const std::string& working_directory,
                            const std::function<bool(const std::string&)>& excluded);

}  // namespace mp::lint
