#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "instrument/torch/op_info.hpp"

namespace mp::twin {

// Memory in 16 bits that the program itself updates from step to step, such as an average of weights, in a run without
// a twin: how many elements stay as they are although something is added to them. Known from sampled steps alone, of
// memory that the same op has updated in two of them before. Reads at most 65,536 elements of a call, and only of the
// CPU. Holds memory weakly. Safe from any thread.
class StandingUpdates {
public:
    struct Update {
        at::Tensor target;
        std::string before;                  // the first elements of the target
        std::vector<std::uint8_t> is_meant;  // to change, for each of these
    };
    struct Count {
        std::uint64_t meant = 0, stood = 0;
    };

    // Called before an op of a sampled step.
    std::vector<Update> begin(const OpInfo&, const std::vector<IValue>& arguments, std::int64_t step);
    // Called after it.
    static Count count(const std::vector<Update>&);

private:
    struct Memory {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address in use
        const OpInfo* op = nullptr;
        std::int64_t step = -1;  // the last one
        std::int64_t steps = 0;  // sampled ones in which the op updated it
    };

    bool is_updated_again(const OpInfo&, const at::Tensor&, std::int64_t step);

    std::mutex mutex_;
    std::unordered_map<const c10::StorageImpl*, Memory> memory_;
    std::size_t room_ = 1024;  // until the next look for what was freed
};

}  // namespace mp::twin
