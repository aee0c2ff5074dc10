#pragma once

#include "instrument/cuda/process.hpp"
#include "instrument/cuda/real.hpp"

// What the wrappers of library functions share.

#define MP_HOOK extern "C" __attribute__((visibility("default")))

namespace mp::raw {

// Makes the real call, exactly once and with the program's arguments. If this is an observed process and the outermost
// observed call of this thread, `describe` fills an Event first, and the run sees it before and after.
template <class Event, class Call, class Describe, class Before>
int observe(Source source, const Call& call, const Describe& describe, const Before& before) noexcept {
    Run* const r = Inside::any() ? nullptr : run();
    if (!r || !is_armed(source)) return call();
    const Inside inside;
    Event event;
    Run::Ticket ticket;
    guarded(source, [&] {
        if (describe(event)) ticket = before(*r, event);
    });
    const int status = call();
    guarded(source, [&] { r->after(ticket, event, status == 0); });
    return status;
}

}  // namespace mp::raw
