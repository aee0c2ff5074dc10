// MP204 optimizer-step-skips-scaler
//
// What   The loss is scaled, and the optimizer steps without the scaler.
// Why    The gradients are still multiplied by the scale: with 65536 the weights move 65536 times
//        too far, and a step with infinite gradients is not skipped.
// Fix    scaler.step(optimizer), then scaler.update().
// Silent After unscale_ or where the scale was read: the gradients are divided. Disabled scalers,
//        the branch without a scaler, another optimizer with a loss of its own; classes that derive from
//        Accelerator, whose optimizers step through the scaler.
// Tests  testdata/lint/MP204.md, tests/analyzer/rules/optimizer_step_skips_scaler_test.cpp

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

void check(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::step_around)) {
        if (is_in_accelerator(context, v.before)) continue;
        const std::string name = shown(protocol_of(context).scaler_in(*v.at.function), "the scaler");
        Finding made{.rule = "MP204",
                     .severity = v.at_most,
                     .span = v.at.call().span,
                     .message =
                         "the optimizer steps with gradients that are still multiplied by the "
                         "loss scale of " +
                         name,
                     .fix = "let the scaler step: step(optimizer) of the scaler, then its update()",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, v.before, "backward of the scaled loss");
        made.edits = through_scaler(protocol_of(context).scaler_in(*v.at.function), v);
        emit(context, *v.at.function, std::move(made), out);
    }
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
