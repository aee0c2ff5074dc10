#include "instrument/torch/nodes.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <vector>

#include "instrument/torch/session.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

Session* g_session = nullptr;

// Of the last node of this thread that has a number.
LayerId& last_layer() {
    static thread_local LayerId last = 0;
    return last;
}

std::vector<NodePlace>& places() {
    static thread_local std::vector<NodePlace> all;
    return all;
}

// AccumulateGrad has no number of its own. Its parameter says where it belongs; where torch does not tell
// the node (before 2.1), the node before it is the best guess.
NodePlace accumulating(const std::vector<NodePlace>& outer, LayerId previous) {
    NodePlace place{previous, true, outer.empty() ? 0 : outer.back().layer_depth};
#if MP_TORCH_AT_LEAST(2, 1)
    const auto node = torch::autograd::get_current_node();
    const auto* const accumulate = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
    if (!accumulate || !accumulate->variable.defined()) return place;
    const LayerId owner = g_session->parameters().layer_of(accumulate->variable);
    if (owner) place = {owner, false, place.layer_depth};
#endif
    return place;
}

std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& node) {
    ThreadState& state = thread_state();
    ++state.autograd_depth;
    const std::int64_t sequence = node.seqNr();
    try {
        if (!g_session->armed()) {
            places().emplace_back();
            return nullptr;
        }
        // AccumulateGrad has the largest number there is, stored as -1.
        NodePlace place = sequence < 0
                              ? accumulating(places(), last_layer())
                              : NodePlace{layers().of_node(node.forwardThreadId(), sequence), false, 0};
        place.layer_depth = layers().depth();
        if (sequence >= 0) last_layer() = place.layer;
        places().push_back(place);
        if (sequence < 0) return nullptr;
        const std::int64_t previous = state.last_node;
        state.last_node = sequence;
        if (state.depth > 0) return nullptr;
        at::Tensor gradient;
        if (!g_session->has_python() && !node.inputs().empty() && node.inputs()[0].isTensor())
            gradient = node.inputs()[0].toTensor();
        const Internal internal;
        g_session->node_begins(sequence, previous, gradient);
    } catch (const std::exception& e) {
        g_session->internal_fault("autograd observer", e.what());
    }
    return nullptr;
}

void node_ends(const at::RecordFunction&, at::ObserverContext*) {
    --thread_state().autograd_depth;
    if (!places().empty()) places().pop_back();
}

}  // namespace

const NodePlace* running_node() noexcept { return places().empty() ? nullptr : &places().back(); }

NodePlace place_beside_node(const OpInfo& op) {
#if MP_TORCH_AT_LEAST(2, 1)
    (void)op;
    const auto node = torch::autograd::get_current_node();
    if (!node) return {};
    if (dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get()))
        return accumulating(places(), last_layer());
    return {layers().of_node(node->thread_id(), static_cast<std::int64_t>(node->sequence_nr())), false, 0};
#else
    // The engine runs without gradients, and this is all it runs by itself.
    return op.base == "sum" && !at::GradMode::is_enabled() ? NodePlace{last_layer(), true, 0} : NodePlace{};
#endif
}

void observe_nodes(Session& session) {
    g_session = &session;
    at::addGlobalCallback(at::RecordFunctionCallback(node_begins, node_ends)
                              .scopes({at::RecordScope::BACKWARD_FUNCTION})
                              .needsInputs(!session.has_python()));
}

}  // namespace mp::twin
