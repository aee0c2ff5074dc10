// MP408 reduced-precision-reduction
//
// What   A matrix product may add its partial sums in fp16 or bf16:
//        `allow_fp16_accumulation = True`, `allow_fp16_reduced_precision_reduction = True`.
// Why    A long inner dimension is split, and the parts are then added in half: a few more bits are
//        lost, and in fp16 a partial sum above 65504 is inf although the result would fit.
// Fix    Set the flag to False for training.
// Silent The flag set to False, or to something that is not constant.
// Tests  testdata/lint/MP408.md, tests/analyzer/rules/reduced_precision_reduction_test.cpp

#include <array>

#include "analyzer/rules/arguments.hpp"
#include "analyzer/rules/support.hpp"

namespace mp::lint {
namespace {

struct Flag {
    std::string_view setting;  // of Python
    std::string_view setter;   // of at::Context
    DType dtype = DType::unknown;
    bool accumulates = false;  // not only the parts of a split product, every product
};
constexpr std::array<Flag, 3> kFlags{
    {{"torch.backends.cuda.matmul.allow_fp16_accumulation", "setAllowFP16AccumulationCuBLAS",
      DType::fp16, true},
     {"torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
      "setAllowFP16ReductionCuBLAS", DType::fp16, false},
     {"torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
      "setAllowBF16ReductionCuBLAS", DType::bf16, false}}};

void report(const RuleContext& context, const Function& f, const Flag& flag,
            const SourceSpan& span, Findings& out) {
    const std::string dtype(label(flag.dtype));
    std::string message = "matrix products may ";
    message += flag.accumulates ? "accumulate in " + dtype : "join their partial sums in " + dtype;
    if (flag.dtype == DType::fp16)
        message += ": a partial sum above 65504 is inf although the result would fit";
    else
        message += ": every join rounds to its 8 bits";
    const bool warns = flag.accumulates && !context.inference;
    emit(context, f,
         {.rule = "MP408",
          .severity = warns ? Severity::warning : Severity::note,
          .span = span,
          .message = std::move(message),
          .fix = "set it to false while training",
          .notes = {},
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    for (const Function* f : context.program.functions()) {
        for (const Setting& setting : f->settings)
            for (const Flag& flag : kFlags)
                if (setting.key.str() == flag.setting && is_true(&setting.value))
                    report(context, *f, flag, setting.span, out);
        for (const Call& call : f->calls)
            for (const Flag& flag : kFlags)
                if (is_within(call.name.str(), "at") && leaf(call.name.str()) == flag.setter &&
                    is_true(argument(call, 0, "allow")))
                    report(context, *f, flag, call.span, out);
    }
}

}  // namespace

extern constinit const Rule kReducedPrecisionReduction{.id = "MP408",
                                                       .name = "reduced-precision-reduction",
                                                       .severity = Severity::warning,
                                                       .on_by_default = true,
                                                       .confirmed_by = "MPT010",
                                                       .check = check};

}  // namespace mp::lint
