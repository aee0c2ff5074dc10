// MP502 ema-in-half
//
// What   A running average of weights (EMA, teacher) is stored in fp16 or bf16 with a decay so near
//        to 1 that the added value is lost by rounding.
// Why    ema = d * ema + (1 - d) * w moves by at most (1 - d) of the distance. bf16 has 8 bits: above
//        d = 1 - 2^-8 even a difference as large as the weight is lost; fp16 has 11.
// Fix    Keep the average in fp32.
// Silent An average in fp32; a decay below the threshold; a decay that is not known, unless the update
//        is compiled code, where the default of the formula is a mean over thousands of steps.
// Tests  testdata/lint/MP502.md, tests/analyzer/rules/ema_in_half_test.cpp

#include <cmath>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The smallest 1 - decay: below it, what is added to the average is lost to rounding.
double smallest_weight(DType d) { return std::exp2(-significant_bits(d)); }

// How much of the new value an update takes, for an in-place update of an average.
struct Average {
    const Operand* target = nullptr;
    double weight = 0;
};

// ema.lerp_(new, 1 - decay)
Average interpolation(const Call& call) {
    if (call.op.name() != "lerp" || !call.in_place || call.args.empty()) return {};
    const Operand* weight = argument(call, 1, "weight");
    const auto value = weight ? number_of(*weight) : std::nullopt;
    return value ? Average{&call.args[0], *value} : Average{};
}

// ema.mul_(decay).add_(new, alpha=1 - decay)
Average scaled_sum(const Function& f, const Call& call) {
    if (call.op.name() != "add" || !call.in_place || call.args.empty()) return {};
    const Call* scaled = call_of(f, call.args[0]);
    if (!scaled || scaled->op.name() != "mul" || !scaled->in_place || scaled->args.size() < 2) return {};
    const auto decay = number_of(scaled->args[1]);
    return decay ? Average{&scaled->args[0], 1 - *decay} : Average{};
}

void report(const RuleContext& context, const Function& f, const SourceSpan& span, DType dtype, bool proven,
            std::vector<Note> notes, Findings& out) {
    emit(context, f,
         {.rule = "MP502",
          .severity = proven ? error_if_proven(dtype) : Severity::warning,
          .span = span,
          .message = "running average is stored in " + std::string(label(dtype)) +
                     ": with this decay what is added to it rounds away",
          .fix = "keep the average in fp32",
          .notes = std::move(notes),
          .function = {}},
         out);
}

bool may_average(std::string_view op) { return op == "lerp" || op == "add"; }

void check_update(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                  Findings& out) {
    Average average = interpolation(call);
    if (!average.target) average = scaled_sum(f, call);
    if (!average.target || average.weight <= 0) return;
    const TensorDType found = dtypes.of(f, *average.target);
    if (!is_low_precision(found.dtype) || average.weight >= smallest_weight(found.dtype)) return;
    report(context, f, call.span, found.dtype, found.proven, found.chain, out);
}

bool is_averaged_model(std::string_view name) { return name == "torch.optim.swa_utils.AveragedModel"; }

// torch.optim.swa_utils.AveragedModel(model.half(), multi_avg_fn=get_ema_multi_avg_fn(0.999))
void check_averaged_model(const RuleContext& context, TensorDTypes& dtypes, const Function& f,
                          const Call& call, Findings& out) {
    const Operand* model = argument(call, 0, "model");
    const Operand* function = argument(call, 3, "multi_avg_fn");
    const Call* made = function ? call_of(f, *function) : nullptr;
    if (!model || !made || !leaf(made->name.str()).starts_with("get_ema_")) return;
    const Operand* decay = argument(*made, 0, "decay");
    const double weight = decay ? 1 - number_of(*decay).value_or(0) : 1 - 0.999;
    const TensorDType found = dtypes.of(f, *model);
    if (!is_low_precision(found.dtype) || weight >= smallest_weight(found.dtype)) return;
    report(context, f, call.span, found.dtype, found.proven, found.chain, out);
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    TensorDTypes dtypes(context);
    for_each_op(context.program, may_average,
                [&](const Function& f, const Call& call) { check_update(context, dtypes, f, call, out); });
    for_each_call(context.program, is_averaged_model, [&](const Function& f, const Call& call) {
        check_averaged_model(context, dtypes, f, call, out);
    });
    for_each(context, &Function::updates, [&](const Function& f, const Update& u) {
        if (!u.interpolates || !is_low_precision(u.dtype) || u.compensated) return;
        if (u.has_master && !u.master_optional) return;
        report(context, f, u.span, u.dtype, !u.master_optional, {}, out);
    });
}

}  // namespace

extern constinit const Rule kEmaInHalf{.id = "MP502",
                                       .name = "ema-in-half",
                                       .severity = Severity::error,
                                       .on_by_default = true,
                                       .confirmed_by = "MPT040",
                                       .triggers = {kLowDtypes, kRegions, kEngines},
                                       .check = check};

}  // namespace mp::lint
