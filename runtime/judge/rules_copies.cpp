// MPT061.

#include "kernels/base/figures.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {

// Autocast keeps its 16-bit copies of the weights until its outermost region ends. Each note names a layer that read
// one after the weight had changed.
void judge_copies(Case& c) {
    const RunModel::Note* first = nullptr;
    std::uint64_t layers = 0;
    for (const RunModel::Note& note : c.model.notes) {
        if (note.kind != NoteKind::outdated_copy) continue;
        ++layers;
        if (!first || note.first < first->first) first = &note;
    }
    if (!first) return;
    Finding f = finding("MPT061", Severity::error);
    f.layer = first->text;
    f.phase = Phase::forward;
    f.step = first->first;
    f.value = static_cast<double>(layers);
    f.importance = importance::kOutdatedCopies();
    f.message = "from step " + std::to_string(first->first.value) + " on " + counted(layers, "layer") +
                " read the 16-bit copy of a weight that autocast made before the weight was updated, so the "
                "loss does not follow the updates";
    f.advice =
        "enter autocast once per step, around the forward only; or autocast(cache_enabled=False), or "
        "torch.clear_autocast_cache() after each optimizer step";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
