// MPT012 of gradients of micro-batches that are added up in 16 bits. How many backward passes a step has and in which
// dtype the gradients are is seen in every mode, and what the roundings of so many additions leave is known: the root
// of a third of their number, in floors. A twin shows the same error, but mixed with that of the addends, which is
// often as large: what is asked of it is only that the sums are off at all.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// Additions to each gradient in a sampled step: one less than the backward passes of the step that has fewest.
std::int32_t additions(const RunModel& m, std::int64_t& sampled) {
    std::int32_t fewest = 0;
    for (const StepSummary& step : m.steps) {
        if (!step.sampled) continue;
        fewest = sampled++ == 0 ? step.backwards : std::min(fewest, step.backwards);
    }
    return fewest - 1;
}

// The layer's parameters of this dtype, and so their gradients: a program may have handed these on before the optimizer
// begins.
DTypePlace parameters_of(const RunModel& m, const OpRecord& op) {
    DTypePlace all;
    for (const PlaceTotal& p : m.places) {
        if (p.place.role != TensorRole::parameter || p.place.dtype != op.dtype || p.place.layer != op.layer)
            continue;
        all.elements += p.place.elements;
        all.tensors += p.place.tensors;
    }
    return all;
}

// Whether the op has added whole sets of gradients, one less than there are micro-batches. In the first step their
// layer may not be known yet. A sum of the graph, as of a weight that is used twice, is made in every micro-batch.
bool adds_gradients(const RunModel& m, const OpRecord& op, std::int64_t sampled, std::int32_t chain) {
    if (op.phase != Phase::backward || !is_low_precision(op.dtype) || op.op != "aten::add_") return false;
    const DTypePlace weights = parameters_of(m, op);
    if (weights.elements == 0 || op.elements * weights.tensors != op.calls * weights.elements) return false;
    const auto sets = static_cast<std::int64_t>(op.elements / weights.elements);
    return sets == sampled * chain || (sampled > 1 && sets == (sampled - 1) * chain);
}

// What so many additions leave: each one rounds once, or as was measured. Where most addends are 0 they round nothing.
double rounded_at_each(const OpRecord& op, double phi) {
    return op.loc_compared > 0 ? phi * std::min(introduced_phi(op), 1.0) : phi;
}

// Whether the sums are as far from the twin's as the additions alone would leave their half.
bool shows_in_twin(const OpRecord& op, double phi) { return op.compared == 0 || total_phi(op) >= phi / 2; }

}  // namespace

void judge_accumulation(Case& c, const std::set<OpPlace>& named) {
    std::int64_t sampled = 0;
    const std::int32_t chain = additions(c.model, sampled);
    const double phi = std::sqrt(std::max(0, chain) / 3.0);
    std::vector<const OpRecord*> ops;
    for (const OpSum& s : c.model.ops) {
        const double own = rounded_at_each(s.total, phi);
        if (own >= kAddedUp && shows_in_twin(s.total, own) &&
            adds_gradients(c.model, s.total, sampled, chain) && !named.contains(place_of(s.total)))
            ops.push_back(&s.total);
    }
    if (ops.empty()) return;
    const OpRecord& op = **std::ranges::max_element(ops, {}, &OpRecord::elements);
    Finding f = finding_at("MPT012", Severity::warning, op);
    for (const OpRecord* other : ops)
        if (other != &op) f.more_layers.push_back(other->layer);
    f.value = rounded_at_each(op, phi);
    f.limit = kAddedUp;
    f.unit = "phi";
    f.importance = importance::kSwallowedAddends(0);
    const std::string dtype(name_of(op.dtype));
    f.message = "gradients of " + std::to_string(chain + 1) + " micro-batches a step are added up in " +
                dtype + ", which rounds at each addition: about " + figure(f.value) +
                " φ, one rounding is 1 φ" + others_text(f.more_layers);
    f.advice = "add the gradients up in fp32, and give the optimizer those";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
