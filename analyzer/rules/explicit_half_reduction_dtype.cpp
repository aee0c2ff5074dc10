// MP411 explicit-half-reduction-dtype
//
// What   A sum, norm or another reduction is asked for a result in fp16 or bf16:
//        `dtype=torch.float16`.
// Why    The input is rounded before the reduction. In fp16 the result ends at 65504; in bf16 a count
//        or a running sum keeps 8 bits. Autocast keeps these ops in fp32 and respects the argument, so
//        it also switches that off for this call.
// Fix    Ask for fp32 and cast the result.
// Silent A dtype that is taken from another tensor; fp32; the dtype of a factory or a cast; an input
//        that has this dtype already, in ops whose result stays in range. Softmax and mean add in fp32
//        themselves and stay in range: notes. So are sums in bf16, except of integers and running sums.
// Tests  testdata/lint/MP411.md, tests/analyzer/rules/explicit_half_reduction_dtype_test.cpp

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

bool reduces(std::string_view op) { return traits_of(op).has(Trait::reduces); }

// The result is about as large as the inputs: a mean, a probability.
bool stays_in_range(Op op) {
    const Traits traits = traits_of(op);
    return op.name() == "std" || op.name() == "logsumexp" || traits.has(Trait::bounded) ||
           traits.has(Trait::fp32_inside) || !traits.has(Trait::needs_fp32);
}

// Its partial results are stored, so that each is rounded.
bool is_running(Op op) { return op.name() == "cumsum" || op.name() == "cumprod"; }

// Kernels add in fp32 whatever is asked for: what matters is the range of the result, and the bits of a count.
Severity severity_of(const Call& call, DType asked, DType input) {
    if (stays_in_range(call.op)) return Severity::note;
    if (asked != DType::bf16 || is_running(call.op)) return error_if_proven(asked);
    return is_integer(input) || input == DType::boolean ? Severity::error : Severity::note;
}

DType dtype_named(const Operand& value) {
    const std::string_view constant = leaf(value.constant.str());
    if (constant == "kHalf" || constant == "Half") return DType::fp16;
    if (constant == "kBFloat16" || constant == "BFloat16") return DType::bf16;
    return DType::unknown;
}

// The argument that names a half; a literal, so that the text itself decides.
const Operand* half_dtype(const Function& f, const Call& call, DType& dtype) {
    for (const Operand& value : call.args) {
        if (value.constant.empty()) continue;
        const bool is_dtype = value.shape == Shape::dtype;
        dtype = is_dtype ? value.dtype : is_python(f) ? DType::unknown : dtype_named(value);
        if (is_low_precision(dtype)) return &value;
    }
    return nullptr;
}

std::vector<Edit> edits_of(const Function& f, const Operand& dtype) {
    if (!is_python(f) || !dtype.span.known()) return {};
    return {{dtype.span, rewritten(dtype, "torch.float32")}};
}

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    for_each_op(context.program, reduces, [&](const Function& f, const Call& call) {
        DType dtype = DType::unknown;
        const Operand* asked = half_dtype(f, call, dtype);
        if (!asked) return;
        const DType input = call.args.empty() ? DType::unknown : dtypes.of(f, call.args.front()).dtype;
        if (input == dtype && stays_in_range(call.op)) return;
        emit(context, f,
             {.rule = "MP411",
              .severity = severity_of(call, dtype, input),
              .span = call.span,
              .message = std::string(call.op.name()) + " is asked for a result in " +
                         std::string(label(dtype)) + ": its input is rounded to " +
                         std::to_string(significant_bits(dtype)) + " bits first" +
                         (stays_in_range(call.op) ? std::string() : and_overflows(dtype, "the result")),
              .fix = "ask for fp32 and cast the result",
              .notes = {},
              .function = {},
              .edits = edits_of(f, *asked)},
             out);
    });
}

}  // namespace

extern constinit const Rule kExplicitHalfReductionDtype{.id = "MP411",
                                                        .name = "explicit-half-reduction-dtype",
                                                        .severity = Severity::error,
                                                        .on_by_default = true,
                                                        .confirmed_by = "MPT010",
                                                        .triggers = {kLowDtypes, kRegions, kEngines},
                                                        .check = check};

}  // namespace mp::lint
