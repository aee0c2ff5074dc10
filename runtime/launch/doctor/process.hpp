#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp::launch::doctor {

struct ChildLimits {
    int milliseconds = 60'000;            // then the child and all it started are killed
    std::size_t bytes = 1u << 20;         // of stdout kept; what follows is read and dropped
    std::size_t error_bytes = 16u << 10;  // of stderr kept: its end
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

// "exited with status 1", "killed by signal 11 (Segmentation fault)", "did not answer within 60 s".
std::string describe(const ChildEnd&, const ChildLimits&);

// Runs a program (looked up on PATH) with stdin closed, in a process group of its own, and waits for it.
// Never blocks longer than the limit: a grandchild that keeps the pipe open is not waited for.
ChildEnd run_program(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                     const ChildLimits&);

// Runs `probe` in a fork of this process and returns what it returned. A probe that crashes, hangs, calls
// exit() or prints is an error, or nothing at all: this is how foreign libraries are asked. The caller has
// one thread.
Result<std::string> run_forked(const std::function<std::string()>& probe, const ChildLimits&);

}  // namespace mp::launch::doctor
