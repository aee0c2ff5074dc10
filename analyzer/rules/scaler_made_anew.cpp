// MP215 scaler-made-anew
//
// What   A loop makes a GradScaler in each of its rounds, or calls a function that makes one, for an
//        optimizer that lives on.
// Why    Each scaler begins at 65536: the first steps of every epoch overflow and are skipped until the
//        scale fits again, and a scaler for each step never finds a scale that does.
// Fix    Make one scaler before the loop and pass it on.
// Silent Loops that make the optimizer, too (folds, trials); a scaler that is made only if there is none,
//        or that takes the state of another; tests. A note for scalers that depend on a flag, and where
//        the regions are bf16.
// Tests  testdata/lint/MP215.md, tests/analyzer/rules/scaler_made_anew_test.cpp

#include <algorithm>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Whether the object is the same in all rounds of the loops of this depth.
bool is_kept(const Function& f, const Operand& object, std::uint32_t depth) {
    const Symbol key = key_of(object);
    if (std::ranges::any_of(f.aliases, [&](const Alias& a) { return a.item && a.name == key; })) return false;
    if (object.param != kNone && object.refers.empty()) return true;
    if (const Call* made = call_of(f, object)) return made->loop_depth < depth;
    return !key.empty() && std::ranges::none_of(f.calls, [&](const Call& c) {
        return c.loop_depth >= depth && c.result.name == key;
    });
}

// The regions of the file are bf16, which has the range of fp32: there a loss scale does nothing.
bool has_bf16_regions_alone(const Program& program, Symbol file) {
    bool found = false;
    for (const Function* f : functions_of(program, file))
        for (const Call& call : f->calls) {
            const auto region = autocast_call(call);
            if (!region || call.kind != CallKind::constructor || is_disabled(*region)) continue;
            if (region_dtype(*region) != DType::bf16) return false;
            found = true;
        }
    return found;
}

// The step of the scaler in the function that makes it.
const Call* step_of(const Protocol& protocol, const MadeScaler& scaler) {
    const Function& f = *scaler.function;
    const auto is_step = [&](const Call& c) {
        const Event e = protocol.roles().event(f, c);
        return e.kind == EventKind::scaler_step && e.subject == scaler.name && c.args.size() > 1;
    };
    const auto step = std::ranges::find_if(f.calls, is_step);
    return step == f.calls.end() ? nullptr : &*step;
}

bool takes_state(const MadeScaler& scaler) {
    return std::ranges::any_of(scaler.function->calls, [&](const Call& c) {
        return last_part(c.name.str()) == "load_state_dict" && !c.args.empty() &&
               key_of(c.args[0]) == scaler.name;
    });
}

// The call in a loop that runs the function again and again for one optimizer; nullptr: there is none.
const Call* repeated_call(const RuleContext& context, const Function& f, const Operand& optimizer) {
    const bool is_of_self = optimizer.param == kNone || !optimizer.refers.empty();
    if (is_of_self && !optimizer.name.str().starts_with("self.")) return nullptr;
    for (const Call* c : context.program.callers(f.usr)) {
        const Function* caller = context.program.owner(*c);
        if (!caller || c->loop_depth == 0 || is_trial(context, *caller, *c)) continue;
        const Operand* passed = argument_for(*c, f, is_of_self ? 0 : optimizer.param);
        if (is_of_self && !passed && !c->args.empty()) passed = &c->args[0];
        if (passed && is_kept(*caller, *passed, c->loop_depth)) return c;
    }
    return nullptr;
}

void check_scaler(const RuleContext& context, const MadeScaler& scaler, Findings& out) {
    const Function& f = *scaler.function;
    const Call& made = *scaler.call;
    const Call* const step = step_of(protocol_of(context), scaler);
    if (!step || takes_state(scaler) || is_trial(context, f, made)) return;
    if (!ControlFlow(f).dominates(made.block, step->block))
        return;  // if scaler is None: scaler = GradScaler()
    const Call* repeated = nullptr;
    if (made.loop_depth == 0) {
        if (is_kept(f, step->args[1], 0)) repeated = repeated_call(context, f, step->args[1]);
        if (!repeated) return;
    } else if (!is_kept(f, step->args[1], made.loop_depth)) {
        return;
    }
    const bool is_of_step = step->loop_depth == made.loop_depth;
    const bool matters =
        scaler.enabled.always == Switch::on && !has_bf16_regions_alone(context.program, f.span.file);
    Finding found{.rule = "MP215",
                  .severity = matters ? Severity::warning : Severity::note,
                  .span = made.span,
                  .message = is_of_step
                                 ? "each step gets a new GradScaler: its scale is always the first one, also "
                                   "where that overflows"
                                 : "each epoch gets a new GradScaler: the scale is the first one again, and "
                                   "the steps that overflow until it fits are skipped",
                  .fix = "make one GradScaler before the loop and pass it on",
                  .notes = {},
                  .function = {}};
    if (repeated) found.notes.push_back({repeated->span, "called in a loop here"});
    emit(context, f, std::move(found), out);
}

void check(const RuleContext& context, Findings& out) {
    for (const MadeScaler& scaler : protocol_of(context).scalers())
        if (is_python(*scaler.function) && scaler.enabled.always != Switch::off)
            check_scaler(context, scaler, out);
}

}  // namespace

extern constinit const Rule kScalerMadeAnew{.id = "MP215",
                                            .name = "scaler-made-anew",
                                            .severity = Severity::warning,
                                            .on_by_default = true,
                                            .confirmed_by = "",
                                            .triggers = {kLossScaling, kRegions},
                                            .check = check};

}  // namespace mp::lint
