#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace mp {

// A process of a distributed run, counted from 0; negative when the program is not distributed.
struct Rank {
    std::int32_t value = -1;

    constexpr bool known() const { return value >= 0; }
    friend constexpr auto operator<=>(Rank, Rank) = default;
};

// The number of optimizer steps begun before this one, counted from 0; negative before the first.
struct Step {
    std::int64_t value = -1;

    constexpr bool known() const { return value >= 0; }
    // Saturates at the largest number, which no run reaches.
    constexpr Step next() const {
        return value == std::numeric_limits<std::int64_t>::max() ? *this : Step{value + 1};
    }
    friend constexpr auto operator<=>(Step, Step) = default;
};

}  // namespace mp
