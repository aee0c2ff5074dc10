// MP305 bf16-to-fp16
//
// What   A bf16 tensor, module or value is narrowed to fp16; a checkpoint that was trained in bf16
//        is loaded as fp16 (from_pretrained(..., torch_dtype=torch.float16)), or any is and trained.
// Why    bf16 has fp32's range: weights and activations above 65504 become inf, and those below 6e-8
//        become 0. Models trained in bf16 hold such values.
// Fix    Stay in bf16 or go to fp32; where fp16 is needed, clamp first and check the loss.
// Silent Values that are clamped first, and results that stay in [-1, 1] or sum to 1; checkpoints
//        of which nothing is known and that are not trained. A note for a single value in C++.
// Tests  testdata/lint/MP305.md, tests/analyzer/rules/bf16_to_fp16_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool is_bounded(const Call& call) {
    const Traits traits = traits_of(call.op);
    return traits.has(Trait::bounded) || traits.has(Trait::caps);
}

constexpr std::array<std::string_view, 5> kConversions{"half", "to", "type", "type_as", "toType"};

// A conversion of a tensor or a module, and nothing else: args[0] is what it converts.
bool converts(const Call& call) { return !call.args.empty() && any_of(leaf(call.name.str()), kConversions); }

DType converted_to(const Call& call, TensorDTypes& dtypes, const Function& f) {
    if (leaf(call.name.str()) == "half") return DType::fp16;
    if (call.result.dtype != DType::unknown) return call.result.dtype;
    for (std::size_t i = 1; i < call.args.size(); ++i)
        if (call.args[i].shape == Shape::dtype) return dtypes.of(f, call.args[i]).dtype;
    return DType::unknown;
}

// Up and down again is the same narrowing: w.float().half().
const Operand& before_upcast(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    const bool upcast = call && !call->args.empty() &&
                        (leaf(call->name.str()) == "float" || is_wide(call->result.dtype)) &&
                        (leaf(call->name.str()) == "float" || converts(*call));
    return upcast ? call->args.front() : value;
}

bool holds_values(const Operand& value) {
    return value.shape == Shape::tensor || value.shape == Shape::module || value.shape == Shape::other;
}

std::string message_of(std::string_view what, const Operand& value) {
    return "bf16 " + std::string(what) + quoted(value.name.str()) +
           " is narrowed to fp16: what is above 65504 becomes inf, what is below 3e-08 becomes 0";
}

void emit_finding(const RuleContext& context, const Function& f, const SourceSpan& span, std::string message,
                  std::vector<Note> notes, Findings& out, Severity severity = Severity::warning) {
    emit(context, f,
         {.rule = "MP305",
          .severity = severity,
          .span = span,
          .message = std::move(message),
          .fix = "stay in bf16 or fp32, or clamp to the range of fp16 first",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check_conversion(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                      Findings& out) {
    if (!converts(call) || converted_to(call, dtypes, f) != DType::fp16) return;
    const Operand& value = before_upcast(f, call.args.front());
    if (!holds_values(value)) return;
    TensorDType is = dtypes.of(f, value);
    if (is.dtype != DType::bf16 || !is.proven) return;
    const Call* made = producer(f, value);
    const Call* direct = producer(f, call.args.front());
    if ((made && is_bounded(*made)) || (direct && is_bounded(*direct))) return;
    if (is_python(f) && is_dtype_guarded(f, call.block)) return;
    emit_finding(context, f, call.span, message_of(value.shape == Shape::module ? "module" : "tensor", value),
                 std::move(is.chain), out);
}

// (half*)buffer: the same bits under another type.
bool converts_value(const Cast& cast) { return cast.form != CastForm::reinterpret; }

// __float2half(__bfloat162float(x))
void check_cast(const RuleContext& context, const Function& f, const Cast& cast, Findings& out) {
    if (cast.to != DType::fp16 || !converts_value(cast)) return;
    const bool has_inner = cast.inner >= 0 && static_cast<std::size_t>(cast.inner) < f.casts.size();
    const Cast& first = has_inner ? f.casts[static_cast<std::size_t>(cast.inner)] : cast;
    if (first.from != DType::bf16 || !first.source.constant.empty()) return;
    // Who writes this one conversion wants fp16: the value may have come from there.
    emit_finding(context, f, cast.span, message_of("value", first.source), {}, out, Severity::note);
}

// ---- checkpoints

// Families that were trained in bf16 and are known to overflow in fp16: T5 from 1.1 on and what was
// made of it, and Gemma.
bool trained_in_bf16(std::string_view checkpoint) {
    constexpr std::array<std::string_view, 9> kFamilies{
        "google/t5-v1_1-", "google/flan-t5-", "google/mt5-",     "google/byt5-", "google/flan-ul2",
        "google/ul2",      "google/gemma-",   "bigscience/mt0-", "bigscience/T0"};
    return std::ranges::any_of(kFamilies,
                               [&](std::string_view family) { return checkpoint.starts_with(family); });
}

bool is_same(const Function& f, const Operand& value, const Call& made) {
    return call_of(f, value) == &made || (!made.result.name.empty() && value.name == made.result.name);
}

// Its parameters go to an optimizer, or it goes to a trainer.
const Call* training_of(const Function& f, const Call& made) {
    for (const Call& call : f.calls) {
        const std::string_view name = leaf(call.name.str());
        const bool trainer = call.kind == CallKind::constructor && name.ends_with("Trainer");
        for (const Operand& argument : call.args) {
            if (trainer && is_same(f, argument, made)) return &call;
            const Call* parameters = call_of(f, argument);
            if (parameters && leaf(parameters->name.str()) == "parameters" && !parameters->args.empty() &&
                is_same(f, parameters->args[0], made) && is_within(call.name.str(), "torch.optim"))
                return &call;
        }
    }
    return nullptr;
}

constexpr std::array<std::string_view, 1> kLoadsCheckpoint{"from_pretrained"};

void check_checkpoint(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (!is_python(f) || call.result.dtype != DType::fp16 || is_dtype_guarded(f, call.block)) return;
    const Operand* id = argument(call, 0, "pretrained_model_name_or_path");
    const std::string checkpoint(id ? spelled(*id) : "");
    const bool known = trained_in_bf16(checkpoint);
    const Call* training = context.inference ? nullptr : training_of(f, call);
    if (!known && !training) return;
    std::vector<Note> notes;
    if (training) notes.push_back({training->span, "it is trained here"});
    emit(context, f,
         {.rule = "MP305",
          .severity = known && !context.inference ? Severity::warning : Severity::note,
          .span = call.span,
          .message = known ? checkpoint + " was trained in bf16 and is loaded as fp16: activations "
                                          "above 65504 become inf"
                           : std::string("a checkpoint is loaded as fp16 and trained: where it was "
                                         "trained in bf16, values above 65504 become inf"),
          .fix = "load it as bf16, or as fp32 and train under autocast",
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    for_each_call(context.program, last_part_in(kConversions), [&](const Function& f, const Call& call) {
        check_conversion(context, dtypes, f, call, out);
    });
    for_each(context, &Function::casts,
             [&](const Function& f, const Cast& cast) { check_cast(context, f, cast, out); });
    for_each_call(context.program, last_part_in(kLoadsCheckpoint),
                  [&](const Function& f, const Call& call) { check_checkpoint(context, f, call, out); });
}

}  // namespace

extern constinit const Rule kBf16ToFp16{.id = "MP305",
                                        .name = "bf16-to-fp16",
                                        .severity = Severity::warning,
                                        .on_by_default = true,
                                        .confirmed_by = "MPT001",
                                        .triggers = {kLowDtypes, kRegions, kEngines},
                                        .check = check};

}  // namespace mp::lint
