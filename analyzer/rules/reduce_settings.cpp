#include "analyzer/rules/reduce_settings.hpp"

#include <array>

#include "analyzer/rules/arguments.hpp"
#include "analyzer/rules/engines.hpp"
#include "analyzer/rules/numbers.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

void report(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype,
            std::string_view who, std::string_view fix, Findings& out) {
    emit(context, f,
         {.rule = "MP409",
          .severity = Severity::warning,
          .span = span,
          .message = std::string(who) + " reduces gradients in " + std::string(label(dtype)) +
                     ": every addition rounds to " + std::to_string(significant_bits(dtype)) +
                     " bits" + and_overflows(dtype, "a total"),
          .fix = std::string(fix),
          .notes = {},
          .function = {}},
         out);
}

// MixedPrecision(reduce_dtype=torch.float16). Without one, FSDP1 reduces in param_dtype.
void in_fsdp(const RuleContext& context, Findings& out) {
    for (const Engine& engine : engines_of(context.program)) {
        const bool fsdp = engine.kind == EngineKind::fsdp1 || engine.kind == EngineKind::fsdp2;
        if (!fsdp || !engine.function || !is_low_precision(engine.reduce)) continue;
        report(context, *engine.function, engine.at, engine.reduce, name_of(engine.kind),
               "give it reduce_dtype=torch.float32", out);
    }
}

// model.register_comm_hook(state, default_hooks.fp16_compress_hook)
void in_hook(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (leaf(call.name.str()) != "register_comm_hook") return;
    for (const Operand& value : call.args) {
        const std::string_view hook =
            leaf(value.constant.empty() ? value.name.str() : value.constant.str());
        if (hook == "fp16_compress_hook" || hook == "bf16_compress_hook")
            report(context, f, call.span, hook[0] == 'f' ? DType::fp16 : DType::bf16, hook,
                   "register it only where the bandwidth needs it, and compare the loss", out);
    }
}

void in_setting(const RuleContext& context, const Function& f, const Setting& setting,
                Findings& out) {
    if (setting.key.str() != "communication_data_type") return;
    const DType dtype = dtype_from_name(spelled(setting.value)).value_or(DType::unknown);
    if (is_low_precision(dtype))
        report(context, f, setting.span, dtype, "DeepSpeed", "set it to fp32", out);
}

// Megatron: DistributedDataParallelConfig(grad_reduce_in_fp32=False) beside a half model.
void in_megatron(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    constexpr std::array<std::string_view, 2> kFlags{"grad_reduce_in_fp32",
                                                     "accumulate_allreduce_grads_in_fp32"};
    if (!is_within(call.name.str(), "megatron")) return;
    for (const std::string_view flag : kFlags)
        if (const Operand* value = keyword_argument(call, flag); is_false(value))
            report(context, f, call.span, DType::lowp, flag, "set it to True", out);
}

}  // namespace

void reduced_by_setting(const RuleContext& context, Findings& out) {
    in_fsdp(context, out);
    for (const Function* f : context.program.functions()) {
        for (const Setting& setting : f->settings) in_setting(context, *f, setting, out);
        for (const Call& call : f->calls) {
            in_hook(context, *f, call, out);
            in_megatron(context, *f, call, out);
        }
    }
}

}  // namespace mp::lint
