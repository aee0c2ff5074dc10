// MP207 scaler-on-half-grads
//
// What   A scaler unscales and steps an optimizer whose parameters are fp16; or the Trainer of
//        Hugging Face gets a model loaded in fp16 together with fp16=True.
// Why    PyTorch raises "Attempting to unscale FP16 gradients": the gradients are fp16 as the
//        parameters are, and dividing them by the scale would lose what the scale has saved.
// Fix    Keep the parameters in fp32 and compute under autocast.
// Silent Sharded scalers, which allow it; fused optimizers, which unscale themselves; optimizers over
//        other parameters; dtypes that are not known.
// Tests  testdata/lint/MP207.md, tests/analyzer/rules/scaler_on_half_grads_test.cpp

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_sharded(const Call& call) { return mentions(call.name.str(), "sharded"); }

// AdamW(..., fused=True): such an optimizer takes the scale into its kernel, and the scaler leaves the gradients alone.
bool unscales_itself(const Function& f, Symbol optimizer) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        return call.result.name == optimizer && is_true(keyword_argument(call, "fused"));
    });
}

void check_steps(const RuleContext& context, const Function& f, Findings& out) {
    const Protocol& protocol = protocol_of(context);
    std::vector<Symbol> told;
    for (const Call& c : f.calls) {
        const Event e = protocol.roles().event(f, c);
        if (e.kind != EventKind::scaler_step && e.kind != EventKind::unscale) continue;
        if (is_sharded(c) || std::ranges::find(told, e.optimizer) != told.end()) continue;
        const bool sharded = std::ranges::any_of(protocol.scalers(), [&](const MadeScaler& s) {
            return is_sharded(*s.call) && s.function->span.file == f.span.file;
        });
        if (sharded || protocol.parameters_of(f, e.optimizer) != DType::fp16) continue;
        if (e.kind == EventKind::scaler_step && unscales_itself(f, e.optimizer)) continue;
        told.push_back(e.optimizer);
        emit(context, f,
             {.rule = "MP207",
              .severity = Severity::error,
              .span = c.span,
              .message = "the scaler cannot unscale the gradients of " +
                         shown(e.optimizer, "this optimizer") + ": its parameters are fp16",
              .fix = "keep the parameters in fp32 and compute under autocast",
              .notes = {},
              .function = {}},
             out);
    }
}

// Trainer(model=<fp16>, args=TrainingArguments(fp16=True))
void check_trainer(const RuleContext& context, ModuleDTypes& modules, const Function& f, const Call& c,
                   Findings& out) {
    if (c.kind != CallKind::constructor) return;
    const Operand* model = argument(c, 0, "model");
    const Operand* settings = argument(c, 1, "args");
    if (!model || !settings) return;
    const Call* made = call_of(f, *settings);
    if (!made || !asks_for_fp16(f, *made)) return;
    const bool direct = context.program.dtype_of(f, *model).dtype == DType::fp16;
    // What wraps it since (get_peft_model) may train weights of its own.
    ModuleDType now = modules.of_module(f, *model, c);
    if (now.dtype != DType::fp16 && (!direct || now.dtype != DType::unknown)) return;
    std::vector<Note> notes = std::move(now.chain);
    notes.push_back({made->span, "fp16 training is asked for here"});
    emit(context, f,
         {.rule = "MP207",
          .severity = direct || now.proven ? Severity::error : Severity::warning,
          .span = c.span,
          .message = "the model is loaded in fp16 and trained with fp16=True: its scaler cannot "
                     "unscale fp16 gradients",
          .fix = "load the model in fp32; fp16=True casts what should be half",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    ModuleDTypes modules(context);
    for_each_call(context.program, is_hf_trainer, [&](const Function& f, const Call& c) {
        if (f.kind == FunctionKind::python) check_trainer(context, modules, f, c, out);
    });
    const Protocol& protocol = protocol_of(context);
    const EventMask steps = mask_of(EventKind::scaler_step) | mask_of(EventKind::unscale);
    for (const Function* f : context.program.functions())
        if (protocol.mask(*f) & steps) check_steps(context, *f, out);
}

}  // namespace

extern constinit const Rule kScalerOnHalfGrads{.id = "MP207",
                                               .name = "scaler-on-half-grads",
                                               .severity = Severity::error,
                                               .on_by_default = true,
                                               .confirmed_by = "",
                                               .triggers = {kLossScaling, kLowDtypes, kRegions, kEngines},
                                               .check = check};

}  // namespace mp::lint
