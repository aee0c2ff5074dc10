#include "instrument/torch/op_site.hpp"

#include <algorithm>

#include "instrument/torch/nodes.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// Whether the op updates the old value, as for an average of weights or a counter. Filling memory is not an update.
bool updates_in_place(const OpInfo& info) {
    return info.rule == Rule::generic &&
           std::any_of(info.arguments.begin(), info.arguments.end(),
                       [](const Argument& a) { return a.write && !a.overwrite; });
}

void name_by_call_path(Parts& parts, Site& site, bool makes_node) {
    if (!parts.control.twin_active() && !parts.ledger.sampled()) return;
    const CallPath path = parts.call_paths.here();
    site.address = path.address;
    if (path.layer == 0) return;
    site.layer = path.layer;
    site.guessed = true;
    if (makes_node) parts.layers.runs_op(path.layer);
}

NodePlace beside_node(Parts& parts, const OpInfo& info, LayerId running) {
    return !running && parts.now.backward_ran ? place_beside_node(parts, info) : NodePlace{};
}

}  // namespace

Site site_of(Parts& parts, const OpInfo& info, bool forward) {
    Site site;
    site.ordinal = parts.now.next_ordinal();
    Layers& all = parts.layers;
    const LayerId running = all.current();
    const NodePlace* const node = thread_state().node;
    if (node && !(at::GradMode::is_enabled() && all.depth() > node->layer_depth)) {
        // A checkpointed forward runs modules inside a backward. Their ops have the phase forward.
        site.phase = Phase::backward;
        site.layer = all.depth() > node->layer_depth ? running : node->layer;
        site.guessed = node->guessed;
    } else if (parts.now.in_optimizer) {
        site.phase = Phase::optimizer;
        site.layer = running ? running : all.optimizer;
    } else if (forward || all.in_module()) {
        site.phase = Phase::forward;
        site.layer = running ? running : all.after_model() ? all.loss : 0;
        if (!running && !parts.control.has_python()) name_by_call_path(parts, site, forward);
    } else if (const NodePlace beside = beside_node(parts, info, running); beside.layer) {
        site.phase = Phase::backward;
        site.layer = beside.layer;
        site.guessed = beside.guessed;
    } else if (running) {
        site.phase = running == all.data     ? Phase::data
                     : running == all.bucket ? Phase::backward
                                             : Phase::optimizer;
        site.layer = running;
    } else if (parts.now.backward_ran || updates_in_place(info)) {
        site.phase = Phase::optimizer;
        site.layer = all.update;
    } else {
        site.phase = Phase::data;
        site.layer = all.data;
    }
    return site;
}

}  // namespace mp::twin
