#pragma once

#include <atomic>
#include <string_view>

#include "instrument/torch/collective_records.hpp"
#include "instrument/torch/control.hpp"
#include "instrument/torch/notes.hpp"

namespace mp::twin {

// Errors of the adapter itself. They are noted and never reach the program. Safe from any thread.
class Faults {
public:
    Faults(Control& control, Notes& notes, const CollectiveRecords& collectives)
        : control_(control), notes_(notes), collectives_(collectives) {}

    // The twin lost an op. After three of these faults this process is traced no further.
    void internal(std::string_view where, std::string_view what);
    // A figure is missing; the twin is whole and goes on.
    void measuring(std::string_view where, std::string_view what);
    // The shim asks to stop.
    void disarm(std::string_view reason);

private:
    Control& control_;
    Notes& notes_;
    const CollectiveRecords& collectives_;
    std::atomic<int> count_{0};
};

}  // namespace mp::twin
