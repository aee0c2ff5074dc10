// MP205 scaler-update-missing
//
// What   A scaler steps the same optimizer again without update() in between, or updates before it
//        steps.
// Why    update() is what lowers the scale after an overflow and what clears the state of the step:
//        without it PyTorch raises at the second step, and a scaler of one's own repeats the
//        overflow for ever.
// Fix    scaler.update() once at the end of the iteration, on every way to the next one.
// Silent One update for several optimizers; an update that may be guarded like the step; updates in
//        other methods of the class.
// Tests  testdata/lint/MP205.md, tests/analyzer/rules/scaler_update_missing_test.cpp

#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

void check_missing(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::no_update)) {
        const std::string name = shown(protocol_of(context).scaler_in(*v.at.function), "the scaler");
        Finding made{.rule = "MP205",
                     .severity = v.at_most,
                     .span = v.at.call().span,
                     .message = name +
                                " comes to its next step without update(): its scale does not "
                                "follow overflows",
                     .fix = "call update() of the scaler after the step, on every way to the next one",
                     .notes = {},
                     .function = {}};
        if (v.before != v.at) add_note(made.notes, v.before, "the next step");
        emit(context, *v.at.function, std::move(made), out);
    }
}

void check_early(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::update_first)) {
        Finding made{.rule = "MP205",
                     .severity = Severity::error,
                     .span = v.at.call().span,
                     .message =
                         "update() before step(): the scale changes while these gradients still "
                         "carry the old one",
                     .fix = "call update() of the scaler after its step",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, v.before, "backward of the scaled loss");
        add_note(made.notes, v.after, "the step");
        emit(context, *v.at.function, std::move(made), out);
    }
}

void check(const RuleContext& context, Findings& out) {
    check_missing(context, out);
    check_early(context, out);
}

}  // namespace

extern constinit const Rule kScalerUpdateMissing{.id = "MP205",
                                                 .name = "scaler-update-missing",
                                                 .severity = Severity::error,
                                                 .on_by_default = true,
                                                 .confirmed_by = "",
                                                 .triggers = {kLossScaling, kRegions, kEngines},
                                                 .check = check};

}  // namespace mp::lint
