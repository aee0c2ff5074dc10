#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "instrument/torch/current_step.hpp"
#include "instrument/torch/recording.hpp"

namespace mp::twin {

// Writes notes of this process into its recording. A text is recorded once, with the first step in which it occurs.
// Safe from any thread.
class Notes {
public:
    Notes(Recording& recording, const CurrentStep& now) : recording_(recording), now_(now) {}

    void say(trace::NoteKind kind, std::string_view text) { say(kind, text, now_.number); }
    // The same for a step that ended before.
    void say(trace::NoteKind, std::string_view text, std::int64_t step);
    bool has_file() const noexcept { return recording_.is_open(); }

private:
    Recording& recording_;
    const CurrentStep& now_;
    std::mutex mutex_;
    std::set<std::string> said_;  // kind and text
};

}  // namespace mp::twin
