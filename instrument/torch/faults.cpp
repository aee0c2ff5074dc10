#include "instrument/torch/faults.hpp"

#include <cstdio>
#include <string>

namespace mp::twin {
namespace {

constexpr int kFaultsUntilDisarmed = 3;

}  // namespace

void Faults::internal(std::string_view where, std::string_view what) {
    notes_.say(trace::NoteKind::disarmed, std::string(where) + ": " + std::string(what));
    const int count = ++count_;
    if (count < kFaultsUntilDisarmed) return;
    const bool stopped = control_.disarm(/*attend=*/collectives_.seen());
    if (stopped && !control_.options().quiet)
        std::fprintf(stderr,
                     "mp-trace: stopped after %d internal faults (%.*s); the program runs on untraced\n",
                     count, static_cast<int>(where.size()), where.data());
}

void Faults::measuring(std::string_view where, std::string_view what) {
    notes_.say(trace::NoteKind::lossy, "not measured: " + std::string(where) + ": " + std::string(what));
}

void Faults::disarm(std::string_view reason) {
    const bool has_file = control_.disarm(/*attend=*/false) && notes_.has_file();
    if (has_file) notes_.say(trace::NoteKind::disarmed, reason);
}

}  // namespace mp::twin
