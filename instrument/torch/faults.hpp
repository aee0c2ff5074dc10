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

    // The twin lost an op. After three such faults tracing of this process stops.
    void internal(std::string_view where, std::string_view what);
    // A figure is missing. The twin is intact and continues.
    void measuring(std::string_view where, std::string_view what);
    // Stops tracing at the request of the shim.
    void disarm(std::string_view reason);

private:
    Control& control_;
    Notes& notes_;
    const CollectiveRecords& collectives_;
    std::atomic<int> count_{0};
};

}  // namespace mp::twin
