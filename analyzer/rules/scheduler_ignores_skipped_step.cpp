// MP211 scheduler-ignores-skipped-step
//
// What   A learning-rate scheduler steps after scaler.step whether or not that step was skipped.
// Why    The first steps are usually skipped while the scale comes down: a warm-up starts too far
//        on, and PyTorch warns that the scheduler came before the optimizer.
// Fix    Compare get_scale() before and after update().
// Silent Schedulers that step per epoch, and code that asks for the scale in between.
// Tests  testdata/lint/MP211.md, tests/analyzer/rules/scheduler_ignores_skipped_step_test.cpp

#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

void check(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::blind_scheduler)) {
        Finding made{.rule = "MP211",
                     .severity = Severity::note,
                     .span = v.at.call().span,
                     .message = "the scheduler steps even when the scaler skipped the optimizer's step",
                     .fix = "step it only when get_scale() did not fall over update()",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, v.before, "the step that may be skipped");
        emit(context, *v.at.function, std::move(made), out);
    }
}

}  // namespace

extern constinit const Rule kSchedulerIgnoresSkippedStep{.id = "MP211",
                                                         .name = "scheduler-ignores-skipped-step",
                                                         .severity = Severity::note,
                                                         .on_by_default = false,
                                                         .confirmed_by = "",
                                                         .triggers = {kLossScaling, kRegions, kEngines},
                                                         .check = check};

}  // namespace mp::lint
