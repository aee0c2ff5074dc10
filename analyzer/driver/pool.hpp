#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace mp::lint {

struct PoolOptions {
    int jobs = 1;
    double timeout = 120;                            // wall seconds per job; then the worker is killed
    std::uint64_t memory = std::uint64_t{12} << 30;  // address space of a worker
    // A worker is replaced after this many jobs: what a compiler front end leaks goes with it.
    int jobs_per_worker = 16;
};

struct JobOutcome {
    enum class State : std::uint8_t { done, crashed, timeout };
    State state = State::done;
    std::string output;   // what the work returned
    std::string message;  // why it is not done: "killed by signal 11 (Segmentation fault)"
    double seconds = 0;
};

// Runs work(0) ... work(count - 1) in forked processes and hands every outcome to `finished` in
// this process, in the order in which they end. A job that crashes or hangs costs itself only: its
// worker is replaced. A job that crashes a worker which had done others before is tried once more
// in a fresh one, so that an earlier job's damage is not counted against it. While they run,
// `meanwhile` is called here again and again, for something short each time, until it says false. Fork
// without exec: call it from a process with one thread.
void run_jobs(std::size_t count, const PoolOptions& options,
              const std::function<std::string(std::size_t)>& work,
              const std::function<void(std::size_t, JobOutcome)>& finished,
              const std::function<bool()>& meanwhile = {});

// Processors this process may use.
int available_jobs();

}  // namespace mp::lint
