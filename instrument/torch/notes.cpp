#include "instrument/torch/notes.hpp"

namespace mp::twin {

void Notes::say(trace::NoteKind kind, std::string_view text, std::int64_t step) {
    if (!recording_.open_for_note()) return;
    {
        const std::lock_guard lock(mutex_);
        if (!said_.insert(std::to_string(static_cast<int>(kind)) + std::string(text)).second) return;
    }
    recording_.note({kind, Step{step}, std::string(text), 1});
}

}  // namespace mp::twin
