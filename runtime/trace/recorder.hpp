#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/result.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// Writes records to one file from a helper thread that has all signals blocked. Safe to call from any thread of the
// program under test: a call copies what it needs, never waits for input or output, and never throws. The queue holds
// at most `queue_bytes`; beyond that records are dropped and counted. The first failed or short write stops the
// recording, never the program. Safe to destroy at any moment, from atexit, or never.
class Recorder final {
public:
    struct Limits {
        std::uint64_t file_bytes = 256u << 20;
        std::uint64_t queue_bytes = 16u << 20;
    };

    // Creates `directory`/recording_name(...) with O_EXCL; no file is created when that fails.
    static Result<std::unique_ptr<Recorder>> open(const std::string& directory, const std::string& name,
                                                  Limits);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void process(const ProcessRecord&) noexcept;
    void step(const StepRecord&) noexcept;
    void note(const NoteRecord&) noexcept;

    // Waits until the queued records are written, at most `milliseconds`. False: some are not written yet.
    bool flush(int milliseconds) noexcept;
    // Called in the child of a fork. It drops the file and the thread and records nothing more.
    void abandon_after_fork() noexcept;

    std::uint64_t dropped() const noexcept;  // records lost to a full queue or a failed write
    const std::string& path() const noexcept;

private:
    struct State;
    explicit Recorder(std::unique_ptr<State>);
    std::unique_ptr<State> state_;
};

}  // namespace mp::trace
