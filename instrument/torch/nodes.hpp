#pragma once

#include <cstddef>

#include "instrument/torch/layers.hpp"

namespace mp::twin {

class Session;

// The autograd node that this thread is in.
struct NodePlace {
    LayerId layer = 0;
    bool guessed = false;
    std::size_t layer_depth = 0;  // of this thread's layers when the node began
};

// Null outside a backward.
const NodePlace* running_node() noexcept;

// Watches autograd nodes begin and end: losses are the roots of a backward, and a node's ops belong to the
// layer whose forward made it.
void observe_nodes(Session&);

}  // namespace mp::twin
