// MPT062: gradients that are clipped before GradScaler has divided them by the loss scale. The norm that is compared
// with the limit is that of the scaled gradients, so every update is clipped, and the division makes it smaller once
// more. The twin runs the same ops, so no error shows it. A program may multiply the limit by the scale instead: then
// the factor is not small.

#include <algorithm>
#include <string>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"

namespace mp::trace {
namespace {

constexpr double kLargeScale = 64;
constexpr double kSmallFactor = 0.1;

// The op of this name, of torch's clipping or of GradScaler; null: none ran.
const OpRecord* op_of(const RunModel& m, std::string_view layer, std::string_view name) {
    const auto found = std::ranges::find_if(
        m.ops, [&](const OpSum& s) { return s.total.layer == layer && base_name(s.total.op) == name; });
    return found == m.ops.end() ? nullptr : &found->total;
}

// The earliest op of this layer in a step.
const OpRecord* first_of(const RunModel& m, std::string_view layer) {
    const OpRecord* first = nullptr;
    for (const OpSum& s : m.ops)
        if (s.total.layer == layer && (!first || s.total.first < first->first)) first = &s.total;
    return first;
}

// The lowest loss scale of a step that was taken; 0: a step had none.
double lowest_scale(const RunModel& m) {
    double lowest = 0;
    for (const StepSummary& step : m.steps) {
        if (!step.has_loss_scale) return 0;
        lowest = lowest > 0 ? std::min(lowest, step.loss_scale) : step.loss_scale;
    }
    return lowest;
}

}  // namespace

void judge_scaled_clip(Case& c) {
    const OpRecord* const clipping = first_of(c.model, "(clipping)");
    const OpRecord* const unscaling = first_of(c.model, "(scaler)");
    const OpRecord* const factor = op_of(c.model, "(clipping)", "clamp");
    const double scale = lowest_scale(c.model);
    // With several optimizers, one may have been divided before.
    if (!clipping || !unscaling || !factor || scale < kLargeScale || !c.model.others.empty()) return;
    if (clipping->first > unscaling->first || factor->amax <= 0 || factor->amax >= kSmallFactor) return;
    Finding f = finding_at("MPT062", Severity::error, *factor);
    f.value = factor->amax;
    f.limit = kSmallFactor;
    f.importance = importance::kScaledClip();
    f.message = "gradients are clipped before GradScaler divides them by the loss scale (" + figure(scale) +
                "): their norm contains it, and every update is multiplied by " + figure(factor->amax) +
                " or less";
    f.advice = "call scaler.unscale_(optimizer) before clip_grad_norm_()";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
