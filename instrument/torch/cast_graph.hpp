#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace mp::twin {

using torch::autograd::Node;

// A cast between float types is a node of the graph in low precision and nothing in an fp32 run, because there
// `x.float()` is `x`. Gradients that meet at a cast are therefore grouped: r + (m + p) instead of (r + m) + p.

// One gradient that a producer adds to a sum.
struct Addend {
    Node* producer = nullptr;
    std::uint32_t output = 0;  // of the producer
    Node* enters = nullptr;    // where the output arrives: the consumer, or a cast on the way to it
    std::uint32_t input = 0;   // of `enters`
};

// The gradient of one input of a node, whose addends an fp32 run groups otherwise.
struct RegroupedSum {
    Node* consumer = nullptr;
    std::uint32_t input = 0;
    Node* cast = nullptr;              // one of the casts
    std::vector<Addend> addends;       // in the order in which an fp32 run adds them
    const char* unfollowed = nullptr;  // why the twin cannot add them in that order; null: it can
};

// Finds these sums in the graph of a backward. `root`: the node at which it starts, which is not in `graph`. Visits
// every edge once, and only the nodes if there are no casts. Keeps nothing.
std::vector<RegroupedSum> regrouped_sums(const std::unordered_set<Node*>& graph, Node* root);

}  // namespace mp::twin
