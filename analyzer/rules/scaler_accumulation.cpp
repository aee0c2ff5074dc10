// MP206 scaler-accumulation
//
// What   Gradients are accumulated over several backward passes, and unscale_ or update runs after
//        each of them although the step comes only after the last.
// Why    A second unscale_ before the update raises; an update in between changes the scale while
//        gradients with the old one are still being added up.
// Fix    unscale_, clip, step and update together, once per step.
// Silent All of it inside the condition of the step; gradients that are zeroed every time.
//        A warning where only a setting leads past the step.
// Tests  testdata/lint/MP206.md, tests/analyzer/rules/scaler_accumulation_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

Finding finding_of(const Violation& v, std::string message, std::string fix) {
    return {.rule = "MP206",
            .severity = v.at_most,
            .span = v.at.call().span,
            .message = std::move(message),
            .fix = std::move(fix),
            .notes = {},
            .function = {}};
}

// A method for unscale_ alone, which catches what it raises. A handler around a whole step does not know what went
// before.
bool is_caught(const RuleContext& context, const Function& caller, const Call& call) {
    const Function* method = context.program.definition(call.callee);
    if (!method) method = &caller;
    const auto belongs_to_step = [](const Call& other) {
        return any_of(leaf(other.name.str()), std::array<std::string_view, 3>{"step", "update", "backward"});
    };
    if (std::ranges::any_of(method->calls, belongs_to_step)) return false;
    return std::ranges::any_of(method->calls, [&](const Call& c) {
        return leaf(c.name.str()) == "unscale_" && c.block < method->flow.size() &&
               std::ranges::any_of(method->flow[c.block].to, &Edge::raises);
    });
}

void check(const RuleContext& context, Findings& out) {
    for (const Violation& v : violations_of(context, Defect::unscaled_twice)) {
        if (is_caught(context, *v.at.function, v.at.call())) continue;
        Finding made =
            finding_of(v,
                       "unscale_ comes again before the step: a path leads from here past step and "
                       "update back "
                       "to it",
                       "call unscale_ only when the step follows, under the same condition");
        if (v.before != v.at) add_note(made.notes, v.before, "unscale_ before that");
        emit(context, *v.at.function, std::move(made), out);
    }
    for (const Violation& v : violations_of(context, Defect::update_per_backward)) {
        Finding made = finding_of(v,
                                  "the loss scale is updated between two backward passes whose gradients are "
                                  "added up: they "
                                  "carry different scales",
                                  "call update() of the scaler after its step, under the same condition");
        add_note(made.notes, v.before, "the next backward adds to the same gradients");
        emit(context, *v.at.function, std::move(made), out);
    }
}

}  // namespace

extern constinit const Rule kScalerAccumulation{.id = "MP206",
                                                .name = "scaler-accumulation",
                                                .severity = Severity::error,
                                                .on_by_default = true,
                                                .confirmed_by = "",
                                                .triggers = {kLossScaling, kRegions, kEngines},
                                                .check = check};

}  // namespace mp::lint
