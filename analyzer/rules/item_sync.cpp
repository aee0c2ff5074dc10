// MP605 item-sync
//
// What   Every step waits for the GPU because of precision bookkeeping: `scaler.get_scale()`,
//        `torch.isnan(loss).item()`, `if torch.isinf(x).any():` in the loop.
// Why    Reading a value of the device stops the host until all work before it is done: the queue of
//        kernels runs empty once per step.
// Fix    Ask every N steps, or keep the answer on the device.
// Silent Outside of loops; in a function that divides a step counter (`step % 100`) around it. Off by
//        default: sometimes the answer is worth the wait.
// Tests  testdata/lint/MP605.md, tests/analyzer/rules/item_sync_test.cpp

#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool is_finite_test(const Call& call) { return traits_of(call.op).has(Trait::finite_test); }

bool reads_scale(std::string_view name) { return name.ends_with("GradScaler.get_scale"); }

bool reads_value(std::string_view name) { return leaf(name) == "item" || leaf(name) == "__bool__"; }

// `.item()` of a test for NaN, whatever was reduced in between.
bool reads_finite_test(const Function& f, const Call& call) {
    if (!reads_value(call.name.str()) || call.args.empty()) return false;
    return origin(f, call.args[0], is_finite_test) != nullptr;
}

constexpr std::array<std::string_view, 3> kLastParts{"get_scale", "item", "__bool__"};
bool may_wait(std::string_view name) { return reads_scale(name) || reads_value(name); }

// `step % n`, in another block than the call: it runs only now and then.
bool is_thinned_out(const Function& f, const Call& call) {
    for (const Call& c : f.calls)
        if (leaf(c.name.str()) == "__mod__" && c.block != call.block) return true;
    return false;
}

void check(const RuleContext& context, Findings& out) {
    const NameQuestion question = last_part_in(kLastParts, may_wait);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (call.loop_depth == 0 || !is_python(f)) return;
        const bool scale = reads_scale(call.name.str());
        if (!scale && !reads_finite_test(f, call)) return;
        if (is_thinned_out(f, call)) return;
        emit(context, f,
             {.rule = "MP605",
              .severity = Severity::note,
              .span = call.span,
              .message = std::string(scale ? "get_scale()" : "the answer of a test for NaN or inf") +
                         " is read on the host in every iteration, which waits for the GPU",
              .fix = "read it every N steps, or keep it on the device",
              .notes = {},
              .function = {}},
             out);
    });
}

constexpr std::array<std::string_view, 4> kOwnTriggers{"isnan", "isinf", "isfinite", "isneginf"};

}  // namespace

extern constinit const Rule kItemSync{.id = "MP605",
                                      .name = "item-sync",
                                      .severity = Severity::note,
                                      .on_by_default = false,
                                      .confirmed_by = "",
                                      .triggers = {kLossScaling, kOwnTriggers},
                                      .check = check};

}  // namespace mp::lint
