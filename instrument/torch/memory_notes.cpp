#include "instrument/torch/memory_notes.hpp"

#include <cstdio>

namespace mp::twin {

// A twin keeps fp32 copies of parameters, gradients and two optimizer moments.
void say_memory_forecast(Parts& parts) {
    char text[256];
    std::snprintf(
        text, sizeof text,
        "twin: %.1f MB held at the first backward; expect 16 B per parameter and 4 B per live activation "
        "element more than without",
        static_cast<double>(parts.shadows.bytes()) / 1e6);
    parts.notes.say(trace::NoteKind::memory, text);
    const Control& control = parts.control;
    if (!control.options().quiet && control.identity().rank.value <= 0)
        std::fprintf(stderr, "mp-trace: %s\n", text);
}

void say_memory_at_end(Parts& parts) {
    const std::uint64_t parameters = parts.parameters.elements();
    if (parts.control.options().mode != trace::Mode::trajectory || parameters == 0) return;
    char text[160];
    const auto held = static_cast<double>(parts.shadows.bytes());
    std::snprintf(text, sizeof text, "twin: %.1f MB held at the end, %.1f B per parameter", held / 1e6,
                  held / static_cast<double>(parameters));
    parts.notes.say(trace::NoteKind::memory, text);
}

}  // namespace mp::twin
