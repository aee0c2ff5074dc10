// MP304 finfo-min-additive-mask
//
// What   A mask that holds the lowest value of a format is added to half scores, or to another such
//        mask: `scores + (1 - mask) * torch.finfo(scores.dtype).min`.
// Why    The lowest fp16 value plus a score of -16 is -inf, and so are two masks added in any
//        format; a row whose elements are all masked is then NaN after softmax.
// Fix    masked_fill, or clamp the sum, or add in fp32.
// Silent masked_fill and where with that value; one such mask added in bf16 or fp32, where the sum
//        stays in range; scores of unknown dtype. Two masks are a note: few rows are masked as a whole.
// Tests  testdata/lint/MP304.md, tests/analyzer/rules/finfo_min_additive_mask_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/python_constants.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// The lowest value, by finfo or as the number itself.
bool is_lowest(const Function& f, const Operand& value, DType dtype) {
    if (limit_of(f, value).which == "min") return true;
    const auto number = number_of(value);
    return number && *number == -largest_value(dtype);
}

// Calls that make a mask of the lowest value, or keep one: a product with it, a fill, a cast.
bool carries_mask(const Call& call) {
    constexpr std::array<std::string_view, 5> kOps{"mul", "masked_fill", "where", "triu", "tril"};
    constexpr std::array<std::string_view, 4> kFactories{"torch.full", "torch.full_like",
                                                         "torch.Tensor.new_full", "torch.tensor"};
    constexpr std::array<std::string_view, 4> kKeeps{"to", "type_as", "half", "type"};
    return any_of(call.op.name(), kOps) || any_of(call.name.str(), kFactories) ||
           any_of(leaf(call.name.str()), kKeeps);
}

// Whether the operand is such a mask: found through the calls that carry one, and moves between.
bool is_mask(const Function& f, const Operand& value, DType dtype, int depth = 8) {
    const Call* call = producer(f, value);
    if (!call || depth == 0 || !carries_mask(*call)) return false;
    for (const Operand& argument : call->args)
        if (is_lowest(f, argument, dtype) || is_mask(f, argument, dtype, depth - 1)) return true;
    return false;
}

// A quick look before the dtypes are followed.
bool may_add_mask(const Function& f, const Call& call) {
    const auto may_be_mask = [&](const Operand& value) {
        const Call* call_of_it = producer(f, value);
        return call_of_it && carries_mask(*call_of_it);
    };
    return may_be_mask(call.args[0]) || may_be_mask(call.args[1]);
}

bool is_addition(std::string_view op) { return op == "add"; }

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    for_each_op(context.program, is_addition, [&](const Function& f, const Call& call) {
        if (call.args.size() < 2 || !may_add_mask(f, call)) return;
        TensorDType is = dtypes.of(f, call.args[0]);
        if (!is_low_precision(is.dtype)) is = dtypes.of(f, call.args[1]);
        const DType dtype = is_low_precision(is.dtype) ? is.dtype : DType::fp16;
        const bool left = is_mask(f, call.args[0], dtype), right = is_mask(f, call.args[1], dtype);
        const bool both = left && right && !is_wide(is.dtype);
        if (!both && (is.dtype == DType::bf16 || !is_low_precision(is.dtype))) return;
        if (!left && !right) return;
        if (is_python(f) && is_dtype_guarded(f, call.block)) return;
        std::string message = both
                                  ? "two masks of the lowest value are added: their sum is -inf"
                                  : "a mask of the lowest value is added in " + std::string(label(is.dtype)) +
                                        ": with a score of -16 or less the sum is -inf";
        message += ", and a row that is masked as a whole is nan after softmax";
        emit(context, f,
             {.rule = "MP304",
              .severity = both ? Severity::note : Severity::warning,  // few rows are masked as a whole
              .span = call.span,
              .message = std::move(message),
              .fix = "use masked_fill, clamp the sum to torch.finfo(x.dtype).min, or add in fp32",
              .notes = std::move(is.chain),
              .function = {}},
             out);
    });
}

// Two such masks are wrong in any format.
constexpr std::array<std::string_view, 1> kOwnTriggers{"finfo("};

}  // namespace

extern constinit const Rule kFinfoMinAdditiveMask{.id = "MP304",
                                                  .name = "finfo-min-additive-mask",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT001",
                                                  .triggers = {kLowDtypes, kRegions, kEngines, kOwnTriggers},
                                                  .check = check};

}  // namespace mp::lint
