#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/numerics/phase.hpp"

// Where in the program a thread is, from the ranges that it has open.

namespace mp::raw {

// A path of open ranges. Ids are small and never reused; 0 is "no range".
using PlaceId = std::uint32_t;

struct Place {
    PlaceId id = 0;
    std::string layer;  // "Layer 2/attention"; directly in a phase its range: "gpt2_forward"; empty: no range
    Phase phase = Phase::unknown;
    bool numbered = false;  // a range in it is a numbered layer
    bool phased = false;    // a range with a phase is in it
    bool in_phase = false;  // `layer` is that range, which is not a part of what is inside
};

// All paths of this process. The layer of a path begins at its outermost numbered layer, because programs nest layers
// at different depths in forward and backward. Without one it has all ranges but the step and the outermost phase.
// Safe from any thread.
class Places {
public:
    Places() { places_.emplace_back(); }

    // References stay valid.
    const Place& child(PlaceId parent, std::string_view range);
    const Place& operator[](PlaceId id) const;
    // Ranges whose names were too many to keep; their ops count for the range around them.
    std::uint64_t dropped() const;

private:
    static constexpr std::size_t kMost = 1 << 16;  // names with a number of their own would grow without end

    mutable std::mutex mutex_;
    std::deque<Place> places_;
    std::map<std::pair<PlaceId, std::string>, PlaceId, std::less<>> children_;
    std::uint64_t dropped_ = 0;
};

// The open ranges of one thread. Plain data, so that a thread's end frees nothing.
struct ThreadRanges {
    static constexpr int kDeepest = 128;
    struct Open {
        PlaceId before;
        std::uint32_t domain;
        bool is_step;
    };

    PlaceId place = 0;
    int depth = 0;         // of `open`
    int beyond = 0;        // ranges above kDeepest, which have no entry
    std::uint32_t of = 0;  // the number of the process that these belong to: a fork starts anew
    Open open[kDeepest];

    // False: the range is too deep and will only be counted.
    bool push(PlaceId inner, std::uint32_t domain, bool is_step) noexcept;
    // Closes the innermost range of `domain`. Returns whether that was a step. A pop without a range does nothing.
    bool pop(std::uint32_t domain, bool& unbalanced) noexcept;
};

}  // namespace mp::raw
