// MP103 banned-op-in-autocast
//
// What   An op that the region's device refuses is called inside an enabled autocast region
//        (binary_cross_entropy on CUDA and XPU).
// Why    Its backward divides by p and 1 - p, which fp16 rounds to 0 and 1; PyTorch throws at run
//        time.
// Fix    binary_cross_entropy_with_logits on the raw scores.
// Silent CPU autocast, which runs it in fp32; disabled regions; code that no enabled region
//        reaches. Where a parameter chooses the op and no call is known to choose it: a warning.
// Tests  testdata/lint/MP103.md, tests/analyzer/rules/banned_op_in_autocast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/excluded_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/devices.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

constexpr std::array<std::string_view, 3> kLastParts{"forward", "operator()", "operator->"};
// A module call runs the functional op of the same name: BCELoss is binary_cross_entropy.
bool calls_loss_module(std::string_view name) {
    const std::string_view method = leaf(name);
    if (method != "forward" && method != "operator()" && method != "operator->") return false;
    return mentions(name, "::BCELossImpl::") || mentions(name, "::BCELoss::") ||
           name.starts_with("torch.nn.BCELoss.") || name.starts_with("torch.nn.modules.loss.BCELoss.");
}

// The list of some device refuses it.
bool is_refused(const RuleContext& context, Op op) {
    const auto refuses = [&](std::string_view device) {
        const Policy* policy = context.policy(device);
        return policy && policy->category(op) == Category::banned;
    };
    return std::ranges::any_of(kDeviceNames, refuses) || refuses(context.device);
}

void check_call(const RuleContext& context, const Function& f, const Call& call, Op op, Findings& out) {
    const Context* region = context.program.enabled_context(f, call);
    if (!region || region->enabled != Switch::on) return;
    const Policy* policy = policy_of(context, *region);
    if (!policy || policy->category(op) != Category::banned) return;
    const bool proven = region->proven && !region->device.empty() && !is_open_choice(context, f, call.span);
    emit(
        context, f,
        {.rule = "MP103",
         .severity = proven ? Severity::error : Severity::warning,
         .span = call.span,
         .message = std::string(op.name()) + " is refused inside " + describe(*region) +
                    ": PyTorch throws here, because its gradient does not survive half precision",
         .fix = op.name() == "binary_cross_entropy" ? "use binary_cross_entropy_with_logits on the raw scores"
                                                    : "leave the region for this call and upcast its inputs",
         .notes = notes_of(*region),
         .function = {}},
        out);
}

void check(const RuleContext& context, Findings& out) {
    const auto may = [&](std::string_view op) { return is_refused(context, Op(op)); };
    for_each_op(context.program, may,
                [&](const Function& f, const Call& call) { check_call(context, f, call, call.op, out); });
    const Op cross_entropy("binary_cross_entropy");
    const NameQuestion question = last_part_in(kLastParts, calls_loss_module);
    for_each_call(context.program, question, [&](const Function& f, const Call& call) {
        if (!call.op.known()) check_call(context, f, call, cross_entropy, out);
    });
}

}  // namespace

extern constinit const Rule kBannedOpInAutocast{.id = "MP103",
                                                .name = "banned-op-in-autocast",
                                                .severity = Severity::error,
                                                .on_by_default = true,
                                                .confirmed_by = "MPT060",
                                                .triggers = {kRegions, kEngines},
                                                .check = check};

}  // namespace mp::lint
