#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/fold/exact_sum.hpp"
#include "runtime/fold/interner.hpp"
#include "runtime/fold/parts.hpp"

namespace mp::trace {

// Replicas are compared on the first sampled steps that a tensor has.
inline constexpr std::size_t kMaxHashedSteps = 256;

// Named tensors, a slot for each (kind, name).
class TensorTable {
public:
    // The row-th tensor of a step.
    void add(std::size_t row, const TensorRecord&, std::uint32_t name, Rank, Step, bool sampled);
    void merge(const TensorTable&, Interner&, const Interner& others);
    void put(RunModel&, const Interner&) const;

private:
    // The bytes of one size that ranks hold at one step.
    struct Hashes {
        std::int64_t step = 0;
        std::uint64_t elements = 0;
        std::pair<Rank, std::uint64_t> lowest;  // rank, and the hash of its bytes
        bool mismatch = false;
        std::pair<Rank, std::uint64_t> differs;  // the lowest rank with another hash
        double twin_low = 0,
               twin_high = 0;  // sum of squares of the twins, the smallest and largest over ranks
        bool several = false;  // ranks
    };
    struct State {
        TensorSum sum;
        std::uint32_t name = 0;
        std::array<ExactSum, kDoubleSums<TensorRecord>.size()> last;
        std::array<ExactSum, 2> moved, sampled, first;  // first: of sum.first_sample
        std::array<ExactSum, 3> change;
        std::array<ExactSum, 2> rounded;  // what a rounding takes, the twin's change
        std::vector<Hashes> hashes;       // by step, then elements
        std::size_t next_hash = 0;        // where the one of the step after is looked for
    };

    std::uint32_t slot_of(TensorKind, std::uint32_t name);
    static void keep_last(State&, const TensorRecord&, Step);
    static void keep_first(State&, const std::array<ExactSum, 2>&, Step);
    static void note_hash(State&, const Hashes&);
    static void merge_state(State&, const State&);

    std::vector<State> states_;
    std::unordered_map<std::uint64_t, std::uint32_t> slots_;  // name id and kind -> slot
    std::vector<std::uint32_t> hints_;                        // by row: the slot it had last
};

}  // namespace mp::trace
