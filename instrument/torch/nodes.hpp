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

// Between two nodes the engine sums gradients that were broadcast: the layer of the node before. Unknown (0)
// outside a backward, as far as torch tells.
LayerId layer_between_nodes(const OpInfo&);

// Watches autograd nodes begin and end: losses are the roots of a backward, and a node's ops belong to the
// layer whose forward made it.
void observe_nodes(Session&);

}  // namespace mp::twin
