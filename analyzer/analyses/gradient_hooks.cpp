#include "analyzer/analyses/gradient_hooks.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {
namespace {

// Functions between the hook and its clip, and between who scales and who registers.
constexpr int kFarthest = 3;

constexpr std::array<std::string_view, 2> kRegisters{"register_hook", "register_post_accumulate_grad_hook"};

bool is_of_scale(const Operand& bound) { return mentions(bound.text.str(), "scale"); }

// The call that cuts the values of this parameter: torch.clamp(grad, -c, c), grad.clip_(-c, c).
Site clip_of(const RuleContext& context, const Function& body, std::int32_t param, int left) {
    constexpr std::array<std::string_view, 4> kClips{"clamp", "clamp_", "clip", "clip_"};
    for (const Call& call : body.calls) {
        const bool takes = !call.args.empty() && call.args[0].param == param;
        const bool of_member = !call.args.empty() && is_gradient(body, call.args[0]);
        const bool clips = any_of(leaf(call.name.str()), kClips) && call.callee.empty();
        if (clips && (takes || of_member) && call.args.size() > 1 &&
            std::ranges::none_of(call.args, is_of_scale))
            return {&body, index_of(body, call)};
        const Function* callee = takes && left > 0 ? context.program.definition(call.callee) : nullptr;
        if (!callee || callee->params.empty() || call.kind == CallKind::method) continue;
        if (const Site found = clip_of(context, *callee, 0, left - 1); found.known()) return found;
    }
    return {};
}

Site clip_in_hook(const RuleContext& context, const Call& registers) {
    for (const Symbol usr : registers.lambdas)
        if (const Function* body = context.program.definition(usr); body && !body->params.empty())
            if (const Site found = clip_of(context, *body, 0, kFarthest); found.known()) return found;
    return {};
}

// A callback may scale the loss; the step of the scaler says as well that the gradients were scaled.
Site scale_in(const Protocol& protocol, const Function& f) {
    const EventMask wanted = mask_of(EventKind::scale) | mask_of(EventKind::scaler_step);
    for (const Call& call : f.calls)
        if (mask_of(protocol.roles().event(f, call).kind) & wanted) return {&f, index_of(f, call)};
    return {};
}

// In the function, in a function that it gives the module to, and in the other methods of its class.
Site scale_near(const RuleContext& context, const Function& f, const Operand& module) {
    const Protocol& protocol = protocol_of(context);
    if (const Site here = scale_in(protocol, f); here.known()) return here;
    for (const Call& call : f.calls) {
        const bool gives =
            std::ranges::any_of(call.args, [&](const Operand& o) { return is_same(o, module); });
        const Function* callee = gives ? context.program.definition(call.callee) : nullptr;
        if (callee)
            if (const Site there = scale_in(protocol, *callee); there.known()) return there;
    }
    if (f.parent_class.empty()) return {};
    for (const Function* method : classes_of(context).methods(f.parent_class))
        if (const Site there = scale_in(protocol, *method); there.known()) return there;
    return {};
}

// Follows the module from the function that registers the hook to its callers.
void find_scale(const RuleContext& context, const Function& f, const Operand& module, ClippingHook& hook,
                int left) {
    hook.scaled = scale_near(context, f, module);
    if (hook.scaled.known() || left == 0 || module.param == kNone) return;
    for (const Call* call : context.program.callers(f.usr)) {
        const Function* caller = context.program.owner(*call);
        const Operand* argument = caller ? argument_for(*call, f, module.param) : nullptr;
        if (!argument) continue;
        find_scale(context, *caller, *argument, hook, left - 1);
        if (!hook.scaled.known()) continue;
        hook.passed = {caller, index_of(*caller, *call)};
        return;
    }
}

}  // namespace

std::vector<ClippingHook> clipping_hooks(const RuleContext& context) {
    std::vector<ClippingHook> found;
    for_each_call(context.program, last_part_in(kRegisters), [&](const Function& f, const Call& call) {
        const Call* listing = call.args.empty() ? nullptr : listing_of(f, call.args[0]);
        if (!is_python(f) || !listing || listing->args.empty()) return;
        ClippingHook hook{&f, &call, clip_in_hook(context, call), {}, {}};
        if (!hook.clip.known()) return;
        find_scale(context, f, listing->args[0], hook, kFarthest);
        if (hook.scaled.known()) found.push_back(hook);
    });
    return found;
}

}  // namespace mp::lint
