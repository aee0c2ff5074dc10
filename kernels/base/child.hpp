#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp {

struct ChildLimits {
    int milliseconds = 60'000;            // then the child is killed
    std::size_t bytes = 1u << 20;         // of stdout kept; what follows is read and dropped
    std::size_t error_bytes = 16u << 10;  // of stderr kept: its end
};

// For tools whose complete output is needed, however long it takes.
inline constexpr ChildLimits kNoLimits{.milliseconds = std::numeric_limits<int>::max(),
                                       .bytes = std::numeric_limits<std::size_t>::max(),
                                       .error_bytes = std::numeric_limits<std::size_t>::max()};

// A program to run, without a shell.
struct ChildCommand {
    std::vector<std::string> arguments{};                   // the first is looked up on PATH
    std::optional<std::vector<std::string>> environment{};  // without it: the one of this process
    std::string directory{};                                // empty: the current one
    std::string_view input{};                               // what its stdin reads
    ChildLimits limits{};
    // In a process group of its own: what the child has started is killed with it, and all of them are killed when
    // we are. Otherwise it stays in our group, and Ctrl-C ends it together with us.
    bool own_group = true;
    // When set, it gets stdout and stderr in the order in which they were written; ChildEnd then keeps neither.
    std::function<void(std::string_view)> on_output{};
};

// How a child ended. Exactly one of started == false, timed_out, signal > 0, or an exit status holds.
struct ChildEnd {
    bool started = true;  // false: `why` says what execve answered
    bool timed_out = false;
    int signal = 0;
    int status = 0;
    std::string why;
    std::string out;
    std::string err;

    bool good() const { return started && !timed_out && signal == 0 && status == 0; }
};

// "exited with status 1", "was killed by signal 11 (Segmentation fault)", "did not answer within 60 s".
std::string describe(const ChildEnd&, const ChildLimits&);

// Waits for the child, never longer than the limit: a grandchild that keeps the pipe open is not waited for.
ChildEnd run_child(const ChildCommand&);

// A tool of the user's machine (git, diff, python): the whole output, however long it takes, and Ctrl-C ends it
// with us. An Error when it cannot be started.
Result<ChildEnd> run_tool(const std::vector<std::string>& arguments, const std::string& directory = {},
                          std::string_view input = {});

// Runs `probe` in a fork of this process and returns what it returned. A probe that crashes, hangs, calls exit()
// or prints is an error, or nothing at all: foreign libraries are asked this way. The caller has one thread.
Result<std::string> run_forked(const std::function<std::string()>& probe, const ChildLimits&);

}  // namespace mp
