// MP107 backward-under-autocast
//
// What   backward(), torch.autograd.grad or manual_backward runs inside an enabled autocast region.
// Why    Autograd replays the dtypes of the forward pass. What torch.compile traced under the region
//        takes it into its backward: gradients overflow to inf. Without compiled code the backward of
//        an op has the same bits inside and outside; only code of the program that runs in it is cast.
// Fix    End the region after the loss.
// Silent Regions that a framework opens around its hooks, and regions of the whole process
//        (hmp.convert); disabled regions; the program's own methods named backward.
// Tests  testdata/lint/MP107.md, tests/analyzer/rules/backward_under_autocast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_of_autograd(std::string_view name) {
    return is_within(name, "torch.autograd") || is_within(name, "torch::autograd");
}

constexpr std::array<std::string_view, 3> kLastParts{"backward", "grad", "manual_backward"};
bool may_be_backward(std::string_view name) {
    constexpr std::array<std::string_view, 2> kFunctions{"backward", "grad"};
    if (is_of_autograd(name)) return any_of(leaf(name), kFunctions);
    if (leaf(name) == "manual_backward") return true;
    // The owner is a tensor, an object of unknown class, or an engine that runs backward on a loss.
    constexpr std::array<std::string_view, 9> kOwners{"at::Tensor", "torch::Tensor",    "torch.Tensor",
                                                      "?",          "accelerate",       "deepspeed",
                                                      "lightning",  "lightning_fabric", "at::TensorBase"};
    return leaf(name) == "backward" &&
           std::ranges::any_of(kOwners, [&](std::string_view owner) { return is_within(name, owner); });
}

// Only for calls that may_be_backward() accepts by name.
bool is_backward(const Program& program, const Call& call) {
    const bool is_function = is_of_autograd(call.name.str());
    return call.kind == (is_function ? CallKind::function : CallKind::method) &&
           !program.definition(call.callee);
}

bool is_compiled(const Program& program, const Function& f, const Call& call) {
    if (const Function* callee = program.definition(call.callee))
        if (std::ranges::any_of(callee->annotations, [](Symbol annotation) {
                return annotation.str().starts_with("torch.compile");
            }))
            return true;
    if (call.args.empty() || call.args[0].call == kNone) return false;
    const Call* made = call_of(f, call.args[0]);
    return made && made->name.str() == "torch.compile";
}

// Code that torch.compile made runs in the region that is open here.
bool wraps_compiled(const Program& program, const Function& f, const Context& region) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        if (!is_compiled(program, f, call)) return false;
        const Context* around = written_region(program, f, call);
        return around && around->opened == region.opened;
    });
}

Severity severity_of(bool compiled, const Context& region) {
    if (!compiled) return Severity::note;
    return region.proven ? Severity::error : Severity::warning;
}

void check(const RuleContext& context, Findings& out) {
    const NameQuestion question = last_part_in(kLastParts, may_be_backward);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (!is_backward(context.program, call)) return;
        const Context* region = written_region(context.program, f, call);
        if (!region) return;
        const bool compiled = wraps_compiled(context.program, f, *region);
        emit(context, f,
             {.rule = "MP107",
              .severity = severity_of(compiled, *region),
              .span = call.span,
              .message = "backward runs inside " + describe(*region) +
                         (compiled ? ": compiled code takes the region into its gradients, which "
                                     "overflow to inf"
                                   : ": code of the program that runs in it is cast by the region"),
              .fix = "end the region after the loss and call backward outside it",
              .notes = notes_of(*region),
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kBackwardUnderAutocast{.id = "MP107",
                                                   .name = "backward-under-autocast",
                                                   .severity = Severity::error,
                                                   .on_by_default = true,
                                                   .confirmed_by = "MPT060",
                                                   .triggers = {kLossScaling, kRegions, kEngines},
                                                   .check = check};

}  // namespace mp::lint
