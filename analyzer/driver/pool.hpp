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
    // A worker is replaced after this many jobs, which frees the memory that a compiler front end leaks.
    int jobs_per_worker = 16;
};

struct JobOutcome {
    enum class State : std::uint8_t { done, crashed, timeout };
    State state = State::done;
    std::string output;   // what the work returned
    std::string message;  // why it failed: "killed by signal 11 (Segmentation fault)"
    double seconds = 0;
};

// Runs work(0) ... work(count - 1) in forked processes and passes every outcome to `finished` in this process, in the
// order in which the jobs end. If a job crashes or hangs, only this job is lost and its worker is replaced. If the
// worker had done other jobs before, the job is tried once more in a fresh worker, because an earlier job may have
// caused the crash. While the jobs run, `meanwhile` is called in this process repeatedly until it returns false; each
// call should be short. The workers are forked without exec, so call it from a process with one thread.
void run_jobs(std::size_t count, const PoolOptions& options,
              const std::function<std::string(std::size_t)>& work,
              const std::function<void(std::size_t, JobOutcome)>& finished,
              const std::function<bool()>& meanwhile = {});

// Processors this process may use.
int available_jobs();

}  // namespace mp::lint
