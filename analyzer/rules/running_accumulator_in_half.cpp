// MP410 running-accumulator-in-half
//
// What   A total over steps or batches is kept in fp16 or bf16: a loss, a metric, an average, or the
//        gradients of several micro-batches; also torch.stack(losses).mean() of half losses.
// Why    Every addition rounds to the few bits of the total: a sum of ones stops growing at 2048 in
//        fp16 and at 256 in bf16, so a mean over an epoch is wrong.
// Fix    Add `.item()` or `.float()`, or create the total in fp32.
// Silent fp32 totals; numbers from `.item()`; up to 32 terms; sums that are part of a computation,
//        which are MP401's. A note where the dtype of the total is not proven on every path.
// Tests  testdata/lint/MP410.md, tests/analyzer/rules/running_accumulator_in_half_test.cpp

#include <array>

#include "analyzer/analyses/accumulators.hpp"
#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

std::vector<Edit> edits_of(const Accumulator& a) {
    if (!a.added || a.added->name.empty() || !a.added->span.known()) return {};
    return {{a.added->span, std::string(a.added->name.str()) + ".float()"}};
}

// DeepSpeed: data_types.grad_accum_dtype; PyTorch: a parameter's grad_dtype.
void settings(const RuleContext& context, const Function& f, Findings& out) {
    for (const Setting& setting : f.settings) {
        if (!setting.key.str().ends_with("grad_accum_dtype")) continue;
        const DType dtype = dtype_from_name(spelled(setting.value)).value_or(DType::unknown);
        if (!is_low_precision(dtype)) continue;
        emit(context, f,
             {.rule = "MP410",
              .severity = Severity::warning,
              .span = setting.span,
              .message = "gradients of the micro-batches are added in " + std::string(label(dtype)) +
                         ": every addition rounds to " + std::to_string(significant_bits(dtype)) + " bits",
              .fix = "accumulate gradients in fp32",
              .notes = {},
              .function = {}},
             out);
    }
}

void collections(const RuleContext& context, Findings& out) {
    for (CollectedTotal& total : collected_totals(context)) {
        const std::string dtype(label(total.dtype));
        std::string message = "losses collected" +
                              (total.list.empty() ? "" : " in" + quoted(total.list.str())) + " are " + dtype +
                              ": ";
        if (total.one_by_one)
            message += "every addition rounds, and a sum of ones stops growing at " + stalls_at(total.dtype);
        else
            message += "each was rounded to " + std::to_string(significant_bits(total.dtype)) +
                       " bits, and so is their " + std::string(total.call->op.name());
        message += and_overflows(total.dtype);
        emit(context, *total.function,
             {.rule = "MP410",
              .severity = Severity::warning,
              .span = total.call->span,
              .message = std::move(message),
              .fix = "collect .item() or .float() of the loss",
              .notes = std::move(total.notes),
              .function = {}},
             out);
    }
}

void check(const RuleContext& context, Findings& out) {
    if (context.inference) return;
    for (const Accumulator& a : python_accumulators(context)) {
        if (!a.over_steps) continue;
        emit(context, *a.function,
             {.rule = "MP410",
              .severity = a.proven ? Severity::warning : Severity::note,
              .span = a.fact->span,
              .message = "running total" + quoted(a.fact->name.str()) + " is " + std::string(label(a.dtype)) +
                         ": a sum of ones stops growing at " + stalls_at(a.dtype) + and_overflows(a.dtype),
              .fix = "add .item() or .float(), or create the total in fp32",
              .notes = a.notes,
              .function = {},
              .edits = edits_of(a)},
             out);
    }
    collections(context, out);
    for (const Function* f : context.program.functions()) settings(context, *f, out);
}

}  // namespace

extern constinit const Rule kRunningAccumulatorInHalf{
    .id = "MP410",
    .name = "running-accumulator-in-half",
    .severity = Severity::warning,
    .on_by_default = true,
    .confirmed_by = "MPT010",
    .triggers = {kLowDtypes, kRegions, kEngines, kConfigurationFiles},
    .check = check};

}  // namespace mp::lint
