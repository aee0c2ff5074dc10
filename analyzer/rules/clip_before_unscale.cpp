// MP203 clip-before-unscale
//
// What   Gradients of a scaled loss are clipped before the scaler divides them by its scale, or before
//        backward has made any.
// Why    With a scale of 65536 every norm is 65536 times too large: clipping at 1.0 leaves
//        gradients that are almost zero once they are unscaled, or cuts all of them.
// Fix    scaler.unscale_(optimizer) before the clip; in Lightning the clip goes into on_before_optimizer_step.
// Silent After unscale_, in branches without a scaler, where the scale was read (to divide
//        by hand), where the engine clips for itself. max_norm=inf measures and does not clip: a
//        note, and so are engines whose precision a launcher or an option sets. A warning where the backward
//        is not seen, where a setting that no code turns on asks for the clip, and for a hook of a tensor.
// Tests  testdata/lint/MP203.md, tests/analyzer/rules/clip_before_unscale_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/gradient_hooks.hpp"
#include "analyzer/analyses/program_options.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// clip_grad_norm_(parameters, inf) leaves gradients as they are.
bool only_measures(const Call& call) {
    for (const Operand& a : call.args) {
        const std::string_view value = a.constant.str();
        if (value == "inf" || value == "math.inf" || value == "'inf'") return true;
    }
    return false;
}

// What the scaler steps in this function, when it is one thing.
Symbol optimizer_of(const Protocol& protocol, const Function& f) {
    Symbol found;
    for (const Call& c : f.calls) {
        const Event e = protocol.roles().event(f, c);
        if (e.kind != EventKind::scaler_step || e.optimizer == found) continue;
        if (!found.empty()) return {};
        found = e.optimizer;
    }
    return found;
}

// Some path to the clip may have unscaled already; a second unscale_ would raise.
bool unscales(const Protocol& protocol, const Function& f) {
    return (protocol.mask(f) & mask_of(EventKind::unscale)) != 0;
}

// The setting that makes the clip a choice, where backward and step are none.
Symbol choice_of(const RuleContext& context, const Violation& v) {
    const Function& f = *v.at.function;
    const Protocol& protocol = protocol_of(context);
    std::vector<std::uint32_t> others;
    if (v.before.function == &f) others.push_back(v.before.call().block);
    for (const Call& c : f.calls)
        if (protocol.roles().event(f, c).kind == EventKind::scaler_step) others.push_back(c.block);
    return open_setting(context.program, f, v.at.call().block, others);
}

Finding finding_of(const RuleContext& context, const Violation& v) {
    const Function& f = *v.at.function;
    const Symbol choice = choice_of(context, v);
    const Symbol optimizer = optimizer_of(protocol_of(context), f);
    const Symbol scaler = protocol_of(context).scaler_in(f);
    const std::string name = shown(scaler, "the scaler");
    const bool measures = only_measures(v.at.call());
    Finding made{.rule = "MP203",
                 .severity = measures         ? Severity::note
                             : choice.empty() ? v.at_most
                                              : Severity::warning,
                 .span = v.at.call().span,
                 .message = measures ? "norm of gradients that are still multiplied by the loss scale"
                                     : "gradients are clipped while they are still multiplied by the "
                                       "loss scale of " +
                                           name + (choice.empty() ? "" : ", where a setting asks for it"),
                 .fix = "call unscale_ of the scaler with the optimizer before the clip",
                 .notes = {},
                 .function = {}};
    add_note(made.notes, v.before, "backward of the scaled loss");
    if (!scaler.empty() && !unscales(protocol_of(context), f) && !optimizer.empty() && !measures)
        made.edits =
            line_before(v.at, std::string(scaler.str()) + ".unscale_(" + std::string(optimizer.str()) + ")");
    return made;
}

// The first call of this kind from `from` on; nullptr: there is none.
const Call* find_event(const Protocol& protocol, const Function& f, const Call* from, EventKind kind) {
    const Call* const end = f.calls.data() + f.calls.size();
    const Call* const found =
        std::find_if(from, end, [&](const Call& c) { return protocol.roles().event(f, c).kind == kind; });
    return found == end ? nullptr : found;
}

// `update()` clips and then unscales or steps through the scaler, and who calls backward is not seen: a library's
// trainer, or autograd, which runs a hook. The step unscales only because nothing did before.
void check_update(const RuleContext& context, const Protocol& protocol, const Function& f, Findings& out) {
    const EventMask here = protocol.mask(f);
    if (!(here & mask_of(EventKind::clip)) || (here & mask_of(EventKind::backward))) return;
    const Call* const clip = find_event(protocol, f, f.calls.data(), EventKind::clip);
    if (!clip || only_measures(*clip)) return;
    const Call* const step = find_event(protocol, f, clip, EventKind::scaler_step);
    const Call* const unscale = find_event(protocol, f, clip, EventKind::unscale);
    const Call* const after = unscale ? unscale : step;
    const bool is_first = find_event(protocol, f, f.calls.data(), EventKind::unscale) == unscale;
    if (!after || !is_first || !reaches(f, clip->block, after->block)) return;
    emit(context, f,
         {.rule = "MP203",
          .severity = Severity::warning,
          .span = clip->span,
          .message =
              unscale ? "gradients are clipped before the scaler unscales them"
                      : "gradients are clipped before the scaler's step, which unscales them: no code of the "
                        "program calls unscale_",
          .fix = "call unscale_ of the scaler with the optimizer before the clip",
          .notes = {{after->span, unscale ? "the scaler unscales here" : "the scaler steps here"}},
          .function = {}},
         out);
}

// zero_grad(), clip, backward: there is no gradient to clip, and those of the scaled loss are never clipped.
void check_order(const RuleContext& context, const Protocol& protocol, const Function& f, Findings& out) {
    constexpr EventMask kWanted =
        mask_of(EventKind::clip) | mask_of(EventKind::backward) | mask_of(EventKind::zero_grad);
    if ((protocol.mask(f) & kWanted) != kWanted) return;
    const Call* const clip = find_event(protocol, f, f.calls.data(), EventKind::clip);
    const Call* const step = find_event(protocol, f, f.calls.data(), EventKind::scaler_step);
    if (!clip || !step || find_event(protocol, f, clip + 1, EventKind::clip)) return;
    const Call* last = nullptr;
    for (const Call& call : f.calls) {
        const Function* const callee = context.program.definition(call.callee);
        if (callee && (protocol.mask(*callee) & kWanted)) return;  // in an order that is not seen here
        if (protocol.roles().event(f, call).kind != EventKind::backward) continue;
        const Reached reached = calls_until(
            f, static_cast<std::size_t>(&call - f.calls.data()),
            [&](const Call& c) { return protocol.roles().event(f, c).kind == EventKind::zero_grad; });
        if (std::ranges::find(reached.calls, static_cast<std::size_t>(clip - f.calls.data())) !=
            reached.calls.end())
            return;
        last = &call;
    }
    if (!last || !reaches(f, clip->block, last->block)) return;
    emit(context, f,
         {.rule = "MP203",
          .severity = Severity::warning,
          .span = clip->span,
          .message = "the clip runs before backward, when there are no gradients: nothing is clipped",
          .fix = "after backward call unscale_ of the scaler with the optimizer, then clip",
          .notes = {{last->span, "the gradients are made here"}},
          .function = {}},
         out);
}

// An engine that scales fp16 losses by itself, its method that clips what it has scaled, and what divides first.
struct ScalingEngine {
    EngineKind kind;
    std::string_view backward, clips, unscales, fix;
};
constexpr std::array<ScalingEngine, 3> kScalingEngines{
    {{EngineKind::accelerate, "accelerate.Accelerator.backward", "", "unscale_gradients",
      "call clip_grad_norm_ of Accelerate, which divides them first"},
     {EngineKind::fabric, "lightning.Fabric.backward", "", "unscale_gradients",
      "call clip_gradients of Lightning Fabric, which divides them first"},
     {EngineKind::lightning, "lightning.LightningModule.manual_backward",
      "lightning.LightningModule.clip_gradients", "unscale_",
      "clip in on_before_optimizer_step, which Lightning calls when it has divided them"}}};

constexpr std::array<std::string_view, 3> kClips{"clip_grad_norm_", "clip_grad_value_", "clip_gradients"};

bool clips_by_hand(const Call& call, const ScalingEngine& engine) {
    const std::string_view name = call.name.str();
    return (name == "torch.nn.utils.clip_grad_norm_" || name == "torch.nn.utils.clip_grad_value_" ||
            is_library_method(name, engine.clips)) &&
           !only_measures(call);
}

bool is_lightning_hook(const Function& f) {
    return leaf(f.name.str()) == "on_after_backward" &&
           std::ranges::any_of(f.bases, [](Symbol base) { return mentions(base.str(), "lightning"); });
}

// Where the engine's backward of a scaled loss ran before the clip; of a hook of Lightning, the hook itself.
SourceSpan backward_before(const Function& f, const Call& clip, const ScalingEngine& engine) {
    const auto found = std::find_if(f.calls.data(), &clip, [&](const Call& c) {
        return is_library_method(c.name.str(), engine.backward) && reaches(f, c.block, clip.block);
    });
    if (found != &clip) return found->span;
    return engine.kind == EngineKind::lightning && is_lightning_hook(f) ? f.span : SourceSpan{};
}

// on: every engine of this kind scales fp16 losses. unknown: one may, as a launcher or an option decides.
Switch scales_fp16(const std::vector<Engine>& engines, EngineKind kind) {
    bool all = true, any = false;
    for (const Engine& e : engines) {
        if (e.kind == EngineKind::deepspeed) return Switch::off;
        if (e.kind != kind) continue;
        const bool may = e.scales && !e.weights && (e.dtype == DType::fp16 || e.dtype == DType::unknown);
        any |= may;
        all = all && may && e.dtype == DType::fp16;
    }
    return !any ? Switch::off : all ? Switch::on : Switch::unknown;
}

// accelerator.backward(loss), and then torch.nn.utils.clip_grad_norm_() on gradients that nothing has unscaled.
void check_engine(const RuleContext& context, const Function& f, const Call& clip, Findings& out) {
    for (const ScalingEngine& known : kScalingEngines) {
        if (!clips_by_hand(clip, known)) continue;
        const SourceSpan backward = backward_before(f, clip, known);
        const auto is_unscale = [&](const Call& c) { return last_part(c.name.str()) == known.unscales; };
        if (!backward.known() || std::ranges::any_of(f.calls, is_unscale)) continue;
        const std::vector<Engine>& engines = engines_of(context);
        const Switch scales = scales_fp16(engines, known.kind);
        if (scales == Switch::off) continue;
        const bool is_chosen = scales == Switch::on;
        const std::string name(name_of(known.kind));
        emit(context, f,
             {.rule = "MP203",
              .severity = is_chosen ? Severity::error : Severity::note,
              .span = clip.span,
              .message =
                  is_chosen
                      ? "gradients are clipped while they are still multiplied by the loss scale of " + name
                      : "if " + name +
                            " runs in fp16, gradients are clipped while they are still multiplied "
                            "by its loss scale",
              .fix = std::string(known.fix),
              .notes = {{backward, is_lightning_hook(f) ? "runs right after backward of the scaled loss"
                                                        : "backward of the scaled loss"},
                        {find_engine(engines, known.kind)->at, name + " is set up here"}},
              .function = {}},
             out);
    }
}

// p.register_hook(lambda grad: grad.clamp(-c, c)): it runs in backward, so unscale_ always comes later.
void check_hooks(const RuleContext& context, Findings& out) {
    for (const ClippingHook& hook : clipping_hooks(context)) {
        Finding made{.rule = "MP203",
                     .severity = Severity::warning,
                     .span = hook.registered->span,
                     .message =
                         "this hook clips gradients during backward, when they are still multiplied by "
                         "the loss scale",
                     .fix = "clip after unscale_ of the scaler, not in a hook",
                     .notes = {},
                     .function = {}};
        add_note(made.notes, hook.clip, "the hook clips here");
        add_note(made.notes, hook.passed, "registered for this module");
        add_note(made.notes, hook.scaled, "the scaler is used here");
        emit(context, *hook.function, std::move(made), out);
    }
}

void check(const RuleContext& context, Findings& out) {
    check_hooks(context, out);
    for_each_call(context.program, last_part_in(kClips), [&](const Function& f, const Call& call) {
        if (is_python(f)) check_engine(context, f, call, out);
    });
    for (const Violation& v : violations_of(context, Defect::clip_scaled))
        emit(context, *v.at.function, finding_of(context, v), out);
    const Protocol& protocol = protocol_of(context);
    const auto functions = context.program.functions();
    const bool unscales_anywhere =
        std::ranges::any_of(functions, [&](const Function* f) { return unscales(protocol, *f); });
    for (const Function* f : functions) {
        if (!is_python(*f)) continue;
        check_order(context, protocol, *f, out);
        const bool is_known = unscales_anywhere && !unscales(protocol, *f);
        if (!is_known && context.program.callers(f->usr).empty()) check_update(context, protocol, *f, out);
    }
}

}  // namespace

extern constinit const Rule kClipBeforeUnscale{.id = "MP203",
                                               .name = "clip-before-unscale",
                                               .severity = Severity::error,
                                               .on_by_default = true,
                                               .confirmed_by = "",
                                               .triggers = {kLossScaling, kRegions, kEngines},
                                               .check = check};

}  // namespace mp::lint
