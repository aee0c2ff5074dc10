// MP119 checkpoint-autocast
//
// What   The backward of an autograd.Function runs the forward again and does not open the region
//        that the forward ran in; or checkpoint(use_reentrant=True) in a region, before PyTorch
//        1.12.
// Why    The second forward runs in another precision: its gradients belong to other activations
//        than those of the loss.
// Fix    Save device, dtype and enabled in forward, and open torch.autocast with them in backward.
// Silent A backward that opens a region; torch.utils.checkpoint since 1.12.
// Tests  testdata/lint/MP119.md, tests/analyzer/rules/checkpoint_autocast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/autograd_classes.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool enables_grad(const Call& call) {
    const std::string_view name = call.name.str();
    return name == "torch.enable_grad" || name == "at::AutoGradMode" || name == "torch::AutoGradMode";
}

bool runs_backward(const Call& call) {
    const std::string_view name = call.name.str();
    return name == "torch.autograd.backward" || name == "torch.autograd.grad" ||
           (call.kind == CallKind::method && leaf(name) == "backward");
}

void report(const RuleContext& context, const Function& f, const SourceSpan& at, std::string message,
            std::string fix, Findings& out) {
    emit(context, f,
         {.rule = "MP119",
          .severity = Severity::note,
          .span = at,
          .message = std::move(message),
          .fix = std::move(fix),
          .notes = {},
          .function = {}},
         out);
}

void check_recompute(const RuleContext& context, const AutogradClass& is, Findings& out) {
    if (!is.backward || has_decorator(*is.backward, "custom_bwd")) return;
    const auto& calls = is.backward->calls;
    const auto enabled = std::ranges::find_if(calls, enables_grad);
    if (enabled == calls.end() || std::ranges::none_of(calls, runs_backward)) return;
    const bool restores = std::ranges::any_of(calls, [](const Call& call) {
        return autocast_call(call).has_value() || mentions(call.name.str(), "autocast");
    });
    if (!restores)
        report(context, *is.backward, enabled->span,
               "the forward runs again here without the autocast state of the first time",
               "save device, dtype and enabled in forward, and open torch.autocast with them here", out);
}

constexpr std::array<std::string_view, 1> kCheckpoint{"torch.utils.checkpoint.checkpoint"};

void check(const RuleContext& context, Findings& out) {
    for (const AutogradClass& is : autograd_classes(context.program)) check_recompute(context, is, out);
    if (!context.older_than({1, 12})) return;
    for_each_call(context.program, name_in(kCheckpoint), [&](const Function& f, const Call& call) {
        if (is_false(keyword_argument(call, "use_reentrant")) || !context.program.enabled_context(f, call))
            return;
        report(context, f, call.span,
               "reentrant checkpointing before PyTorch 1.12 recomputes outside the region",
               "use_reentrant=False, or a newer PyTorch", out);
    });
}

// A backward that runs the forward again does so whatever region the forward runs in.
constexpr std::array<std::string_view, 1> kOwnTriggers{"enable_grad"};

}  // namespace

extern constinit const Rule kCheckpointAutocast{.id = "MP119",
                                                .name = "checkpoint-autocast",
                                                .severity = Severity::note,
                                                .on_by_default = true,
                                                .confirmed_by = "MPT060",
                                                .triggers = {kRegions, kEngines, kOwnTriggers},
                                                .check = check};

}  // namespace mp::lint
