// MP207 scaler-on-half-grads
//
// What   A scaler unscales and steps an optimizer whose parameters are fp16 or bf16; or the Trainer of
//        Hugging Face gets a model loaded in one of them together with fp16=True.
// Why    The gradients are half as the parameters are. For fp16 PyTorch raises "Attempting to unscale FP16
//        gradients", because dividing them by the scale would lose what the scale has saved; for bf16 on CUDA
//        "_amp_foreach_non_finite_check_and_unscale_cuda" is not implemented.
// Fix    Keep the parameters in fp32 and compute under autocast.
// Silent Sharded scalers, which allow it; for fp16 fused optimizers, which unscale themselves; for bf16 scalers that
//        a flag enables or that are not for CUDA; optimizers over other parameters; DeepSpeed and FSDP; dtypes that
//        are not known.
// Tests  testdata/lint/MP207.md, tests/analyzer/rules/scaler_on_half_grads_test.cpp

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/protocol.hpp"
#include "analyzer/analyses/scaler_refusals.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Up to torch 2.11 at least, CUDA's kernel that unscales and looks for infinities has no bf16 variant.
std::string why(DType parameters) {
    return parameters == DType::bf16 ? "bf16, which CUDA does not unscale" : "fp16";
}

void check_step(const RuleContext& context, const Refusal& refused, Findings& out) {
    emit(context, *refused.function,
         {.rule = "MP207",
          .severity = refused.is_certain ? Severity::error : Severity::warning,
          .span = refused.call->span,
          .message = "the scaler cannot unscale the gradients of " +
                     shown(refused.optimizer, "this optimizer") + ": its parameters are " +
                     why(refused.parameters),
          .fix = "keep the parameters in fp32 and compute under autocast",
          .notes = refused.chain,
          .function = {}},
         out);
}

// Trainer(model=<half>, args=TrainingArguments(fp16=True))
void check_trainer(const RuleContext& context, ModuleDTypes& modules, const Function& f, const Call& c,
                   Findings& out) {
    if (c.kind != CallKind::constructor) return;
    const std::optional<PlainTrainer> made = plain_trainer(f, c);
    if (!made || !asks_for_fp16(f, *made->settings)) return;
    const DType own = context.program.dtype_of(f, *made->model).dtype;
    // What wraps it since (get_peft_model) may train weights of its own.
    ModuleDType now = modules.of_module(f, *made->model, c);
    const DType dtype = now.dtype == DType::unknown ? own : now.dtype;
    const bool is_auto = now.is_auto();
    if (!is_auto && !is_proven_low(dtype)) return;
    const bool is_certain = !is_auto && (own == dtype || now.proven);
    const std::string in = is_auto ? "the dtype of the checkpoint" : std::string(label(dtype));
    std::vector<Note> notes = std::move(now.chain);
    if (is_auto) notes.push_back({now.loaded->span, "loaded with dtype=\"auto\" here"});
    notes.push_back({made->settings->span, "fp16 training is asked for here"});
    emit(context, f,
         {.rule = "MP207",
          .severity = is_certain ? Severity::error : Severity::warning,
          .span = c.span,
          .message = "the model is loaded in " + in +
                     " and trained with fp16=True: its scaler cannot unscale " +
                     (is_auto ? "fp16 or bf16" : in) + " gradients",
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
    for (const Refusal& refused : refusals_of(context).all()) check_step(context, refused, out);
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
