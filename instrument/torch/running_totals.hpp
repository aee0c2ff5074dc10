#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "instrument/torch/op_info.hpp"

namespace mp::twin {

// Totals of the CPU that are single values of 16 bits, such as a loss that is added up from step to step, beside what
// their addends add up to in fp64. A total is followed from memory to memory: the value that is added to must have the
// bits of the last sum there. Holds memory weakly. Safe from any thread.
class RunningTotals {
public:
    struct Addition {
        double exact = 0;  // what the total that is added to would be without roundings
        double addend = 0, largest = 0;
        std::int64_t length = 0;
    };
    struct Drift {
        std::int64_t length = 0;  // additions
        double share = 0;         // of the largest value that the total had
    };

    // Called before an op; none: it adds no value to a single one of 16 bits. A Python number is no addend: what it
    // adds is the same each time (counters.hpp). Copies nothing: nearly all additions are of larger tensors.
    std::optional<Addition> begins(const OpInfo&, c10::ArrayRef<IValue> arguments);
    // Called with the sum. None until the total is long.
    std::optional<Drift> ends(const Addition&, const at::Tensor& sum);

private:
    struct Total {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address in use
        double value = 0, exact = 0, largest = 0;
        std::int64_t length = 0;
    };
    using Place = std::pair<const c10::StorageImpl*, std::int64_t>;  // offset

    const Total* total_in(const at::Tensor&, double value) const;

    mutable std::mutex mutex_;
    std::map<Place, Total> totals_;
    std::size_t room_ = 256;  // until the next look for what was freed
};

}  // namespace mp::twin
