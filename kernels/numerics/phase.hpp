#pragma once

#include <cstdint>
#include <string_view>

namespace mp {

// The part of a training step in which an op ran. A forward that activation checkpointing repeats during
// backward counts as forward.
enum class Phase : std::uint8_t { unknown, data, forward, backward, optimizer };

constexpr std::string_view name_of(Phase phase) {
    switch (phase) {
        case Phase::data:
            return "data";
        case Phase::forward:
            return "forward";
        case Phase::backward:
            return "backward";
        case Phase::optimizer:
            return "optimizer";
        case Phase::unknown:
            break;
    }
    return "unknown";
}

}  // namespace mp
