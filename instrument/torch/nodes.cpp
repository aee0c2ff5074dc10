#include "instrument/torch/nodes.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <memory>

#include "instrument/torch/adapter.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// A node that runs. Torch keeps it until the node ends; nodes of one thread nest.
struct RunningNode final : at::ObserverContext {
    NodePlace place;
    const NodePlace* outer = nullptr;
};

// AccumulateGrad has no number. Its layer is that of its parameter. Torch before 2.1 does not give the running node;
// the layer of the node before is then the best guess.
NodePlace accumulating(Parts& parts, const ThreadState& state) {
    NodePlace place{state.last_node_layer, true, state.node ? state.node->layer_depth : 0};
#if MP_TORCH_AT_LEAST(2, 1)
    const auto node = torch::autograd::get_current_node();
    const auto* const accumulate = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
    if (!accumulate || !accumulate->variable.defined()) return place;
    const LayerId owner = parts.parameters.layer_of(accumulate->variable);
    if (owner) place = {owner, false, place.layer_depth};
#else
    (void)parts;
#endif
    return place;
}

// Registers the leaf whose gradient is accumulated.
void leaf_of_node([[maybe_unused]] Parts& parts) {
#if MP_TORCH_AT_LEAST(2, 1)
    const auto node = torch::autograd::get_current_node();
    const auto* const accumulate = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
    if (accumulate && accumulate->variable.defined()) parts.parameters.add_leaf(accumulate->variable);
#endif
}

// Places are looked up only in steps that measure where ops run.
NodePlace place_of(Parts& parts, ThreadState& state, const at::RecordFunction& node) {
    NodePlace place;
    if (parts.control.twin_active() || parts.ledger.sampled()) {
        const std::int64_t sequence = node.seqNr();
        if (sequence < 0) {
            place = accumulating(parts, state);
        } else {
            place.layer = parts.layers.of_node(node.forwardThreadId(), sequence);
            state.last_node_layer = place.layer;
        }
    }
    place.layer_depth = parts.layers.depth();
    return place;
}

// Whether the running pass is one of torch.autograd.grad: it captures gradients instead of accumulating them.
bool gives_gradients_back() {
    const auto* const nodes = torch::autograd::get_current_graph_task_exec_info();
    return nodes &&
           std::ranges::any_of(*nodes, [](const auto& node) { return node.second.captures_ != nullptr; });
}

// Within one backward() nodes run in falling order of their numbers, so a scalar that made its node is the root if its
// number is above that of the node before.
void look_for_root(Adapter& a, ThreadState& state, const at::RecordFunction& node) {
    const std::int64_t sequence = node.seqNr();
    if (sequence < 0) return;  // AccumulateGrad has the largest possible number, stored as -1
    const std::int64_t previous = state.last_node;
    state.last_node = sequence;
    if (state.depth > 0 || (previous >= 0 && sequence <= previous)) return;
    const Internal internal;
    const auto root = a.losses.made_by(sequence);
    if (!root) return;
    if (a.inferred_clock.runs()) {
        const bool has_gradient = !node.inputs().empty() && node.inputs()[0].isTensor();
        a.inferred_clock.begin_backward(has_gradient ? node.inputs()[0].toTensor() : at::Tensor());
    }
    a.clock.begin_backward(*root, !gives_gradients_back());
}

std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& node) {
    ThreadState& state = thread_state();
    ++state.autograd_depth;
    Adapter& a = *adapter();
    if (!a.control.armed()) return nullptr;
    try {
        if (a.control.follows()) a.gradient_sums.node_begins(state);
        auto running = std::make_unique<RunningNode>();
        running->place = place_of(a, state, node);
        running->place.name = node.name();
        running->outer = state.node;
        state.node = &running->place;
        try {
            if (node.seqNr() < 0 && a.inferred_clock.runs() && a.control.has_python()) leaf_of_node(a);
            look_for_root(a, state, node);
        } catch (const std::exception& e) {
            a.faults.internal("autograd observer", e.what());
        }
        return running;
    } catch (const std::exception& e) {
        a.faults.internal("autograd observer", e.what());
        return nullptr;
    }
}

void node_ends(const at::RecordFunction&, at::ObserverContext* context) {
    ThreadState& state = thread_state();
    --state.autograd_depth;
    if (const auto* const running = static_cast<const RunningNode*>(context)) state.node = running->outer;
}

}  // namespace

NodePlace place_beside_node(Parts& parts, const OpInfo& op) {
    const ThreadState& state = thread_state();
#if MP_TORCH_AT_LEAST(2, 1)
    (void)op;
    const auto node = torch::autograd::get_current_node();
    if (!node) return {};
    if (dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get())) return accumulating(parts, state);
    return {parts.layers.of_node(node->thread_id(), static_cast<std::int64_t>(node->sequence_nr())), false,
            0};
#else
    (void)parts;
    // The engine runs without gradients, and this is the only op that it runs itself.
    return op.base == "sum" && !at::GradMode::is_enabled() ? NodePlace{state.last_node_layer, true, 0}
                                                           : NodePlace{};
#endif
}

void observe_nodes(Adapter& a) {
    at::addGlobalCallback(at::RecordFunctionCallback(node_begins, node_ends)
                              .scopes({at::RecordScope::BACKWARD_FUNCTION})
                              .needsInputs(!a.control.has_python()));
}

}  // namespace mp::twin
