#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "instrument/torch/op_info.hpp"
#include "instrument/torch/site.hpp"

namespace mp::twin {

// Counters of a run without a twin: values of 16 bits, fewer than 64 in a tensor of the CPU, to which the program adds
// the same number again and again. In place, nothing else may write them. If each sum is a new tensor (`x = x + 1`),
// the number was added to such a sum at the same place. Known from sampled steps alone. Holds memory weakly. Safe from
// any thread.
class Counters {
public:
    struct Counter {
        at::Tensor tensor;   // what is counted up, or the new sum
        std::string before;  // the bytes of the old value
    };

    // Called before an op of a sampled step. Empty unless the op adds a number that it added in an earlier one too.
    std::vector<Counter> counted_by(const OpInfo&, const std::vector<IValue>& arguments, std::int64_t step);
    // Called after an op of a sampled step that made a new tensor. None unless the tensor is the sum of a counter.
    std::optional<Counter> made_by(const OpInfo&, const std::vector<IValue>& arguments, const Site&,
                                   const at::Tensor& sum);

private:
    struct Added {
        double number = 0;
        std::int64_t step = 0;
    };
    struct Memory {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address in use
        std::int64_t other_write = -1;                      // the last step in which another op wrote
        std::map<std::int64_t, Added> added;                // by offset
        double sum_of = 0;                                  // the number whose addition made it new; 0: none
    };
    using Place = std::tuple<LayerId, Phase, double, std::int64_t, at::ScalarType>;  // number, elements

    Memory& memory_of(const at::Tensor&);
    bool counts(Memory&, std::int64_t offset, double number, std::int64_t step);

    std::mutex mutex_;
    std::unordered_map<const c10::StorageImpl*, Memory> memory_;
    std::set<Place> chains_;   // where a sum was added to again
    std::size_t room_ = 1024;  // until the next look for what was freed
};

// The bytes of a contiguous tensor of the CPU.
std::string bytes_in(const at::Tensor&);

}  // namespace mp::twin
