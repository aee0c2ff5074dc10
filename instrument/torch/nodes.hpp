#pragma once

#include "instrument/torch/op_info.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/site.hpp"

namespace mp::twin {

struct Adapter;

// The place of an op that runs in a backward but not inside a node. The engine runs the hooks of a node (which gather a
// shard's parameters) around the node, and it sums gradients that were broadcast. Layer 0 if torch reports no backward.
NodePlace place_beside_node(Parts&, const OpInfo&);

// Watches autograd nodes begin and end: losses are the roots of a backward, and a node's ops belong to the
// layer whose forward made it.
// Called once, before the program's first backward.
void observe_nodes(Adapter&);

}  // namespace mp::twin
