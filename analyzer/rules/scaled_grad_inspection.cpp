// MP209 scaled-grad-inspection
//
// What   Gradients are read or changed by hand between the scaled backward and unscale_, or a
//        gradient penalty is built with torch.autograd.grad from a loss that is not scaled.
// Why    The numbers are 65536 times too large, or infinite although the step would be skipped. A
//        penalty without the scale underflows in its fp16 backward.
// Fix    After unscale_; for a penalty scale its outputs, divide the gradients by get_scale().
// Silent After unscale_, where the scale was read, with disabled scalers; a test for overflows in a function that takes
//        no step and returns nothing; a norm that divides its own gradient; a penalty whose outputs are computed
//        outside of every region.
// Tests  testdata/lint/MP209.md, tests/analyzer/rules/scaled_grad_inspection_test.cpp

#include <algorithm>
#include <span>
#include <string_view>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/norm_stats.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// torch.isnan(p.grad).any(): to leave the step out, as step() of the scaler does by itself.
bool asks_for_overflow(const Call& call) { return traits_of(leaf(call.name.str())).has(Trait::finite_test); }

// Whether the function can leave a step out: it takes steps, or its caller learns what it found.
bool may_skip_steps(const Function& f) {
    return !f.returned.empty() || std::ranges::any_of(f.calls, [](const Call& call) {
        return leaf(call.name.str()).find("step") != std::string_view::npos;
    });
}

// grad / (grad.norm() + eps): the scale is above and below the line.
bool cancels_scale(const Function& f, const Call& call) {
    if (call.args.empty() || call.args[0].name.empty()) return false;
    const auto is_same = [&](const Operand& o) { return o.name == call.args[0].name; };
    return std::ranges::any_of(divisions_by(f, call), [&](const Call* division) {
        return derives_from(f, division->args[0], is_same);
    });
}

// Where what a value is computed from runs.
struct Made {
    bool anywhere = false;   // some call is known
    bool in_region = false;  // one of them runs in a region
};

Made made_of(const RuleContext& context, const Function& f, std::span<const Operand> values) {
    Made made;
    for (const Operand& value : values)
        derives_from(f, value, [&](const Operand& from) {
            const Call* const call = call_of(f, from);
            made.anywhere = made.anywhere || call;
            made.in_region = made.in_region || (call && context.program.enabled_context(f, *call));
            return made.in_region;
        });
    return made;
}

// Whether all that the penalty is computed from runs outside of every region, in its function or, where that has
// callers, in each of them: the graph is fp32.
bool is_penalty_in_fp32(const RuleContext& context, const Function& f, const Call& gradient) {
    if (context.program.enabled_context(f, gradient)) return false;
    const auto is_outside = [&](const Function* function, std::span<const Operand> values) {
        const Made made = function ? made_of(context, *function, values) : Made{};
        return made.anywhere && !made.in_region;
    };
    const auto callers = context.program.callers(f.usr);
    if (callers.empty()) return is_outside(&f, std::span(gradient.args).first(1));
    return std::ranges::all_of(
        callers, [&](const Call* call) { return is_outside(context.program.owner(*call), call->args); });
}

void check(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::grads_inspected)) {
        const bool asks = asks_for_overflow(v.at.call());
        if ((asks && !may_skip_steps(*v.at.function)) || cancels_scale(*v.at.function, v.at.call())) continue;
        const std::string scale =
            "the loss scale of " + shown(protocol_of(context).scaler_in(*v.at.function), "the scaler");
        Finding made{
            .rule = "MP209",
            .severity = Severity::warning,
            .span = v.at.call().span,
            .message = asks ? "this gradient may overflow by " + scale +
                                  " alone, which falls only if step() sees the overflow"
                            : "this gradient is still multiplied by " + scale,
            .fix = asks ? "leave gradients that are not finite to step() of the scaler, which skips them"
                        : "call unscale_ of the scaler before reading gradients",
            .notes = {},
            .function = {}};
        add_note(made.notes, v.before, "backward of the scaled loss");
        emit(context, *v.at.function, std::move(made), out);
    }
    for (const Violation& v : violations_of(context, Defect::penalty_unscaled)) {
        if (is_penalty_in_fp32(context, *v.at.function, v.at.call())) continue;
        Finding made{.rule = "MP209",
                     .severity = Severity::warning,
                     .span = v.at.call().span,
                     .message =
                         "the gradients of the penalty come from a loss that is not scaled: in "
                         "fp16 they underflow",
                     .fix = "pass scale(outputs) of the scaler, and divide the gradients by get_scale()",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, v.before, "the loss with the penalty");
        emit(context, *v.at.function, std::move(made), out);
    }
}

}  // namespace

extern constinit const Rule kScaledGradInspection{.id = "MP209",
                                                  .name = "scaled-grad-inspection",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "",
                                                  .triggers = {kLossScaling, kRegions, kEngines},
                                                  .check = check};

}  // namespace mp::lint
