#pragma once

#include <cstddef>

#include "instrument/torch/layers.hpp"
#include "instrument/torch/op_info.hpp"

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

// Around a node the engine runs its hooks (which gather a shard's parameters) and sums gradients that were
// broadcast: the place of that node. Layer 0 outside a backward, as far as torch tells.
NodePlace place_beside_node(const OpInfo&);

// Watches autograd nodes begin and end: losses are the roots of a backward, and a node's ops belong to the
// layer whose forward made it.
void observe_nodes(Session&);

}  // namespace mp::twin
