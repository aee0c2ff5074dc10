#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/phase.hpp"

namespace mp::twin {

// A layer's name, interned by Layers for the life of the process. 0: the layer is unknown.
using LayerId = std::uint32_t;

// The place of an op: its layer, its phase and its position in the step.
struct Site {
    LayerId layer = 0;
    bool guessed = false;
    Phase phase = Phase::unknown;
    std::uint64_t ordinal = 0;  // of the op within its step
    std::uint64_t address = 0;  // of the call in a C++ program; 0: unknown
};

// An autograd node that runs, and its layer.
struct NodePlace {
    LayerId layer = 0;
    bool guessed = false;
    std::size_t layer_depth = 0;  // of this thread's layers when the node began
    const char* name = "";        // "MaxPool2DWithIndicesBackward0"; valid while the node runs
};

}  // namespace mp::twin
