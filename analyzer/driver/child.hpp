#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp::lint {

// What a finished child process left.
struct ChildOutput {
    int code = -1;  // exit status; 128 + signal when one killed it
    std::string out;
    std::string err;
};

// Runs arguments[0], looked up in PATH, without a shell; its standard input reads `input`.
// `directory` empty: the current one. An Error when it cannot be started.
Result<ChildOutput> run_child(const std::vector<std::string>& arguments, const std::string& directory = {},
                              std::string_view input = {});

}  // namespace mp::lint
