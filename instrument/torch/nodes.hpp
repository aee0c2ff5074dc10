#pragma once

#include "instrument/torch/op_info.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/site.hpp"

namespace mp::twin {

struct Adapter;

// The place of the node around which this op runs. The engine runs a node's hooks (which gather a shard's parameters)
// beside it, and sums gradients that were broadcast. Layer 0 outside a backward, as far as torch tells.
NodePlace place_beside_node(Parts&, const OpInfo&);

// Watches autograd nodes begin and end: losses are the roots of a backward, and a node's ops belong to the
// layer whose forward made it.
// Called once, before the program's first backward.
void observe_nodes(Adapter&);

}  // namespace mp::twin
