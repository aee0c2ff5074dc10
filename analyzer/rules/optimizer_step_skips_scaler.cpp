// MP204 optimizer-step-skips-scaler
//
// What   The loss is scaled, and the optimizer steps without the scaler.
// Why    The gradients are still multiplied by the scale: with 65536 the weights move 65536 times
//        too far, and a step with infinite gradients is not skipped.
// Fix    scaler.step(optimizer), then scaler.update().
// Silent After unscale_ where the file tests for infinities, or another branch skips the step (else a warning); where
//        the scale was read: the gradients are divided. Disabled scalers, the branch without a scaler, another
//        optimizer with a loss of its own; classes that derive from Accelerator, whose optimizers step through the
//        scaler.
// Tests  testdata/lint/MP204.md, tests/analyzer/rules/optimizer_step_skips_scaler_test.cpp

#include <algorithm>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/loss_scales.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

std::vector<Edit> through_scaler(Symbol scaler, const Violation& v) {
    const Call& call = v.at.call();
    const Symbol optimizer = key_of(call.args[0]);
    if (v.at.function->kind != FunctionKind::python || call.args.size() != 1 || scaler.empty() ||
        optimizer.empty() || call.span.end_line != call.span.line)
        return {};
    return {{call.span, std::string(scaler.str()) + ".step(" + std::string(optimizer.str()) + ")"}};
}

// accelerate wraps the optimizer that it prepares.
bool is_in_accelerator(const RuleContext& context, const Site& backward) {
    return backward.known() &&
           !classes_of(context).library_base(backward.function->parent_class, "Accelerator").empty();
}

// What unscale_ has found is asked for, or the clip raises.
bool asks_for_infinities(const Function& f) {
    return tests_finite(f) || std::ranges::any_of(f.calls, [](const Call& call) {
               return is_true(keyword_argument(call, "error_if_nonfinite")) ||
                      std::ranges::any_of(call.args, [](const Operand& a) {
                          return mentions(a.text.str(), "found_inf") ||
                                 mentions(a.constant.str(), "found_inf");
                      });
           });
}

bool looks_for_infinities(const RuleContext& context, const Function& steps) {
    return std::ranges::any_of(context.program.functions(), [&](const Function* f) {
        return f->span.file == steps.span.file && asks_for_infinities(*f);
    });
}

void report(const RuleContext& context, const Violation& v, std::string message, std::string fix,
            std::string before, Findings& out) {
    Finding made{.rule = "MP204",
                 .severity = v.at_most,
                 .span = v.at.call().span,
                 .message = std::move(message),
                 .fix = std::move(fix),
                 .notes = {},
                 .function = {}};
    add_note(made.notes, v.before, std::move(before));
    made.edits = through_scaler(protocol_of(context).scaler_in(*v.at.function), v);
    emit(context, *v.at.function, std::move(made), out);
}

void check(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::step_unchecked))
        if (!looks_for_infinities(context, *v.at.function))
            report(context, v,
                   "the optimizer steps without the scaler after unscale_: a step with infinite gradients is "
                   "not "
                   "skipped, and every overflow ends in NaN weights",
                   "let the scaler step: it knows that the gradients are divided, and what it has found",
                   "the gradients are divided here", out);
    for (const Violation& v : violations_of(context, Defect::step_around))
        if (!is_in_accelerator(context, v.before))
            report(context, v,
                   "the optimizer steps with gradients that are still multiplied by the loss scale of " +
                       shown(protocol_of(context).scaler_in(*v.at.function), "the scaler"),
                   "let the scaler step: step(optimizer) of the scaler, then its update()",
                   "backward of the scaled loss", out);
}

}  // namespace

extern constinit const Rule kOptimizerStepSkipsScaler{.id = "MP204",
                                                      .name = "optimizer-step-skips-scaler",
                                                      .severity = Severity::error,
                                                      .on_by_default = true,
                                                      .confirmed_by = "",
                                                      .triggers = {kLossScaling, kRegions, kEngines},
                                                      .check = check};

}  // namespace mp::lint
