#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "instrument/torch/control.hpp"
#include "runtime/trace/recorder.hpp"

namespace mp::twin {

// The file of this process. It is created with the first record, so a process that never trains has no file. Only one
// attempt is made to create it. Safe from any thread; once the file is open, no lock of this class is taken.
class Recording {
public:
    explicit Recording(const Control& control) : control_(control) {}

    // Creates the file, if that was not tried before. Returns whether there is a file.
    bool open();
    bool is_open() const noexcept { return recorder_.load(std::memory_order_acquire) != nullptr; }
    // The same, for what is no training.
    bool open_for_note() { return control_.is_child() ? is_open() : open(); }
    // In the child of a fork, which has one thread.
    bool was_tried() const noexcept { return tried_; }

    // Does nothing while there is no file.
    void step(const trace::StepRecord&);
    void note(const trace::NoteRecord&);
    // Whether no process has recorded into the run directory yet.
    bool is_first() const;
    // Where the file is: the run directory, or that of this job below it.
    const std::string& directory() const noexcept { return directory_; }
    std::int64_t steps() const noexcept { return steps_; }
    // Waits until everything is written, 2 s at most.
    void flush();
    void after_fork_in_child() noexcept;

private:
    const Control& control_;
    std::mutex mutex_;
    bool tried_ = false;
    std::string directory_;
    std::unique_ptr<trace::Recorder> owned_;
    std::atomic<trace::Recorder*> recorder_{nullptr};  // owned_, once it is ready
    std::atomic<std::int64_t> steps_{0};
};

}  // namespace mp::twin
