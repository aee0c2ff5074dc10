// MP404 scatter-in-half
//
// What   scatter_add, index_add, index_put(accumulate=True) and their kin sum into a half tensor.
// Why    Every addition rounds to the target's few bits: a thousand ones added into one bf16 element
//        give 256. The order of the additions changes from run to run.
// Fix    Scatter into an fp32 tensor and cast the result.
// Silent fp32 targets; maximum and minimum; writes that replace.
// Tests  testdata/lint/MP404.md, tests/analyzer/rules/scatter_in_half_test.cpp

#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool reduces_by_sum(const Operand* how) {
    if (!how) return false;
    const std::string_view name = spelled(*how);
    return name == "sum" || name == "mean" || name == "add";
}

bool is_of_package(std::string_view name) { return is_within(name, "torch_scatter"); }

// torch_scatter.scatter(src, index, dim, out, dim_size, reduce="sum"), scatter_add, segment_csr ...
bool is_scatter_package(const Call& call) {
    if (!is_of_package(call.name.str())) return false;
    constexpr std::array<std::string_view, 4> kSums{"scatter_add", "scatter_sum", "scatter_mean",
                                                    "segment_sum_csr"};
    if (any_of(leaf(call.name.str()), kSums)) return true;
    constexpr std::array<std::string_view, 3> kBoth{"scatter", "segment_csr", "segment_coo"};
    if (!any_of(leaf(call.name.str()), kBoth)) return false;
    const Operand* how = keyword_argument(call, "reduce");
    return !how || reduces_by_sum(how);
}

// The ops of torch that summed() knows.
bool may_sum(std::string_view op) { return traits_of(op).has(Trait::adds_by_index); }

// What the call adds into or, when it makes its result, what it adds. nullptr: it adds nothing.
const Operand* summed(const Call& call) {
    if (call.args.empty()) return nullptr;
    const std::string_view op = call.op.name();
    const std::size_t own = call.kind == CallKind::method ? 0 : 1;
    if (op == "scatter_add" || op == "index_add" || is_scatter_package(call)) return &call.args.front();
    const bool sums = (op == "scatter_reduce" && reduces_by_sum(argument(call, 3 + own, "reduce"))) ||
                      (op == "index_reduce" && reduces_by_sum(argument(call, 3 + own, "reduce"))) ||
                      (op == "scatter" && reduces_by_sum(keyword_argument(call, "reduce"))) ||
                      (op == "index_put" && is_true(argument(call, 2 + own, "accumulate"))) ||
                      (op == "put" && is_true(argument(call, 2 + own, "accumulate"))) ||
                      (op == "segment_reduce" && reduces_by_sum(argument(call, 1, "reduce")));
    if (sums) return &call.args.front();
    return op == "bincount" ? argument(call, own, "weights") : nullptr;
}

// A promoting op of a region, or one that it runs in fp32, sums in the widest of its inputs.
bool is_widened(const RuleContext& context, const Function& f, const Call& call, TensorDTypes& dtypes) {
    if (call.in_place) return false;
    const Context* region = context.program.enabled_context(f, call);
    if (!region) return false;
    const Policy* policy = policy_of(context, *region);
    if (!policy) return true;
    if (policy->category(call.op) != Category::promote) return false;
    for (const Operand& value : call.args)
        if (is_wide(dtypes.of(f, value).dtype)) return true;
    return false;
}

void check_call(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& call,
                Findings& out) {
    const Operand* target = is_python(f) ? summed(call) : nullptr;
    if (!target) return;
    TensorDType is = dtypes.of(f, *target);
    if (!is_low_precision(is.dtype) || is_widened(context, f, call, dtypes)) return;
    emit(context, f,
         {.rule = "MP404",
          .severity = context.inference ? Severity::note : Severity::warning,
          .span = call.span,
          .message = std::string(leaf(call.name.str())) + " sums into" + quoted(target->name.str()) + " in " +
                     std::string(label(is.dtype)) + ": a sum of ones stops growing at " +
                     stalls_at(is.dtype) + and_overflows(is.dtype),
          .fix = "scatter into an fp32 tensor and cast the result",
          .notes = std::move(is.chain),
          .function = {}},
         out);
}

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    for_each_call_or_op(context.program, is_of_package, may_sum, [&](const Function& f, const Call& call) {
        check_call(context, dtypes, f, call, out);
    });
}

}  // namespace

extern constinit const Rule kScatterInHalf{.id = "MP404",
                                           .name = "scatter-in-half",
                                           .severity = Severity::warning,
                                           .on_by_default = true,
                                           .confirmed_by = "MPT010",
                                           .triggers = {kLowDtypes, kRegions, kEngines},
                                           .check = check};

}  // namespace mp::lint
