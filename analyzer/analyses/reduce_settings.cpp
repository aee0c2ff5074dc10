#include "analyzer/analyses/reduce_settings.hpp"

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/engines.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/analyses/unused_code.hpp"

namespace mp::lint {
namespace {

// Whether the ranks divide before they add: then no total is larger than a gradient.
enum class Divides : std::uint8_t { later, first };

void report(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype,
            std::string_view who, Divides divides, std::string_view fix, Findings& out,
            Severity most = Severity::warning) {
    const bool first = divides == Divides::first;
    emit(context, f,
         {.rule = "MP409",
          .severity = only_rounds(dtype, first) ? Severity::note : most,
          .span = span,
          .message = std::string(who) + " reduces gradients in " + std::string(label(dtype)) +
                     ": every addition rounds to " + std::to_string(significant_bits(dtype)) + " bits" +
                     (first ? std::string() : and_overflows(dtype, "a total")),
          .fix = std::string(fix),
          .notes = {},
          .function = {}},
         out);
}

// A policy that nothing takes: every module that is wrapped gets another one, no call of its function takes it, and
// where it has a name, no argument names it.
bool is_left_unused(const RuleContext& context, const Engine& engine) {
    if (!engine.call || engine.used != Switch::off) return false;
    const Function& f = *engine.function;
    const Symbol name = engine.call->result.name;
    const std::int32_t made = index_of(f, *engine.call);
    const auto is_it = [&](const Operand& value) {
        return value.call == made || (!name.empty() && value.name == name);
    };
    const bool passed =
        std::ranges::any_of(f.calls, [&](const Call& call) { return std::ranges::any_of(call.args, is_it); });
    if (passed) return false;
    if (std::ranges::any_of(f.returned, is_it)) return !is_named(context.program, leaf(f.name.str()));
    const bool is_local = f.kind != FunctionKind::python || (leaf(f.name.str()).front() != '<' &&
                                                             name.str().find('.') == std::string_view::npos);
    return is_local || !is_named(context.program, leaf(name.str()));
}

// MixedPrecision(reduce_dtype=torch.float16). Without one, FSDP1 reduces in param_dtype.
void in_fsdp(const RuleContext& context, Findings& out) {
    for (const Engine& engine : engines_of(context)) {
        const bool fsdp = engine.kind == EngineKind::fsdp1 || engine.kind == EngineKind::fsdp2;
        if (!fsdp || !engine.function || !is_low_precision(engine.reduce)) continue;
        const bool is_idle = is_left_unused(context, engine) || only_runs(*engine.function) ||
                             only_serves_inference(context.program, *engine.function);
        report(context, *engine.function, engine.at, engine.reduce, name_of(engine.kind), Divides::later,
               "give it reduce_dtype=torch.float32", out, is_idle ? Severity::note : Severity::warning);
    }
}

constexpr std::array<std::string_view, 1> kRegistersHook{"register_comm_hook"};

// model.register_comm_hook(state, default_hooks.fp16_compress_hook)
void in_hook(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    for (const Operand& value : call.args) {
        const std::string_view hook = leaf(value.constant.empty() ? value.name.str() : value.constant.str());
        if (hook == "fp16_compress_hook" || hook == "bf16_compress_hook")
            report(context, f, call.span, hook[0] == 'f' ? DType::fp16 : DType::bf16, hook, Divides::first,
                   "register it only where the bandwidth needs it, and compare the loss", out);
    }
}

void in_setting(const RuleContext& context, const Function& f, const Setting& setting, Findings& out) {
    if (setting.key.str() != "communication_data_type") return;
    const DType dtype = dtype_from_name(spelled(setting.value)).value_or(DType::unknown);
    if (is_low_precision(dtype))
        report(context, f, setting.span, dtype, "DeepSpeed", Divides::later, "set it to fp32", out);
}

// bf16=True, fp16=True, params_dtype=torch.bfloat16 of some call in the file: the model is half.
bool makes_half(const Call& call) {
    return std::ranges::any_of(call.args, [](const Operand& value) {
        const std::string_view by = value.keyword.str();
        if (by == "bf16" || by == "fp16") return is_true(&value);
        return by == "params_dtype" && is_low_precision(value.dtype);
    });
}

bool has_half_model(const Program& program, Symbol file) { return has_call(program, file, makes_half); }

bool is_megatron(std::string_view name) { return is_within(name, "megatron"); }

// Megatron: DistributedDataParallelConfig(grad_reduce_in_fp32=False) beside a half model. Gradients of
// an fp32 model are reduced in fp32 all the same.
void in_megatron(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    constexpr std::array<std::string_view, 2> kFlags{"grad_reduce_in_fp32",
                                                     "accumulate_allreduce_grads_in_fp32"};
    for (const std::string_view flag : kFlags)
        if (is_false(keyword_argument(call, flag)) && has_half_model(context.program, f.span.file))
            report(context, f, call.span, DType::lowp, std::string(flag) + "=False", Divides::later,
                   "set it to True", out);
}

}  // namespace

bool only_rounds(DType dtype, bool divides_first) { return divides_first || dtype == DType::bf16; }

void reduced_by_setting(const RuleContext& context, Findings& out) {
    in_fsdp(context, out);
    for_each(context, &Function::settings,
             [&](const Function& f, const Setting& setting) { in_setting(context, f, setting, out); });
    for_each_call(context.program, last_part_in(kRegistersHook),
                  [&](const Function& f, const Call& call) { in_hook(context, f, call, out); });
    for_each_call(context.program, is_megatron,
                  [&](const Function& f, const Call& call) { in_megatron(context, f, call, out); });
}

}  // namespace mp::lint
