// MP117 mixed-half-types
//
// What   fp16 and bf16 are mixed: as inputs of one op, beside a region of the other type in an op that
//        promotes, or as buffer and type argument of one collective.
// Why    Neither holds the other's values. Matrix products throw, promoting autocast ops refuse the
//        half that is not the region's, and a collective reads the bits as another format.
// Fix    One half type in the program, or widen both to fp32 first.
// Silent Values widened with .float(); ops that autocast lowers, which casts both; dtypes that are
//        not proven.
// Tests  testdata/lint/MP117.md, tests/analyzer/rules/mixed_half_types_test.cpp

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/regions.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool can_be_tensor(const Operand& value) {
    return value.shape == Shape::tensor || (value.shape == Shape::other && value.constant.empty());
}

struct Halves {
    const Operand* fp16 = nullptr;
    const Operand* bf16 = nullptr;
};

// The inputs that are provably of each half type. None when they would be fewer than are needed.
Halves halves_of(TensorDTypes& dtypes, const Function& f, const Call& call, std::ptrdiff_t needed) {
    Halves found;
    std::ptrdiff_t left = std::ranges::count_if(call.args, can_be_tensor);
    for (const Operand& value : call.args) {
        if (!can_be_tensor(value)) continue;
        const bool has_one = found.fp16 || found.bf16;
        if (left-- + has_one < needed) return {};
        const TensorDType is = dtypes.of(f, value);
        if (!is.proven) continue;
        if (is.dtype == DType::fp16) found.fp16 = &value;
        if (is.dtype == DType::bf16) found.bf16 = &value;
    }
    return found;
}

// The op computes on all of its inputs together; a cat or a dict does not.
bool combines(const RuleContext& context, Op op) {
    const std::string_view name = op.name();
    const Category listed = context.policy("cuda")->category(op);
    return listed == Category::lower || listed == Category::promote || name == "add" || name == "sub" ||
           name == "mul" || name == "div";
}

void report(const RuleContext& context, const Function& f, const Call& call, Severity severity,
            std::string message, std::vector<Note> notes, Findings& out) {
    emit(context, f,
         {.rule = "MP117",
          .severity = severity,
          .span = call.span,
          .message = std::move(message),
          .fix = "use one half type, or widen both to fp32 with .float() first",
          .notes = std::move(notes),
          .function = {}},
         out);
}

// Without a region: products throw, elementwise ops go to fp32 silently.
void check_plain(const RuleContext& context, const Function& f, const Call& call, const Halves& is,
                 Findings& out) {
    if (!is.fp16 || !is.bf16) return;
    const bool throws = context.policy("cuda")->category(call.op) == Category::lower;
    report(context, f, call, throws ? Severity::error : Severity::warning,
           std::string(call.op.name()) + " meets fp16" + quoted(naming(*is.fp16)) + " and bf16" +
               quoted(naming(*is.bf16)) +
               (throws ? ": PyTorch throws here" : ": the result is fp32, and rounded twice already"),
           {}, out);
}

void check_in_region(const RuleContext& context, const Function& f, const Call& call, const Halves& is,
                     const Context& region, Findings& out) {
    const Policy* policy = policy_of(context, region);
    if (!policy || policy->category(call.op) != Category::promote || !is_proven_low(region.dtype)) return;
    const Operand* other = region.dtype == DType::bf16 ? is.fp16 : is.bf16;
    if (!other) return;
    const std::string type(label(region.dtype == DType::bf16 ? DType::fp16 : DType::bf16));
    report(context, f, call, region.proven ? Severity::error : Severity::warning,
           std::string(call.op.name()) + " gets " + type + quoted(naming(*other)) + " inside " +
               describe(region) + ", which refuses the other half type",
           notes_of(region), out);
}

bool is_collective(std::string_view name) { return name.starts_with("nccl") || name.starts_with("MPI_"); }

// ncclAllReduce(const __half*, ..., ncclBfloat16, ...)
void check_collective(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    DType named = DType::unknown, held = DType::unknown;
    for (const Operand& value : call.args) {
        const std::string_view constant = value.constant.str();
        if (constant == "ncclHalf" || constant == "ncclFloat16") named = DType::fp16;
        if (constant == "ncclBfloat16") named = DType::bf16;
        if (value.shape == Shape::pointer && is_proven_low(value.dtype)) held = value.dtype;
    }
    if (named == DType::unknown || held == DType::unknown || named == held) return;
    if (held != DType::fp16 && held != DType::bf16) return;
    report(context, f, call, Severity::error,
           "a buffer of " + std::string(label(held)) + " is sent as " + std::string(label(named)) +
               ": its bits are read as another format",
           {}, out);
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, is_collective,
                  [&](const Function& f, const Call& call) { check_collective(context, f, call, out); });
    TensorDTypes dtypes(context);
    const auto may_meet = [&](std::string_view op) { return combines(context, Op(op)); };
    for_each_op(context.program, may_meet, [&](const Function& f, const Call& call) {
        if (const Context* region = context.program.enabled_context(f, call))
            check_in_region(context, f, call, halves_of(dtypes, f, call, 1), *region, out);
        else
            check_plain(context, f, call, halves_of(dtypes, f, call, 2), out);
    });
}

}  // namespace

extern constinit const Rule kMixedHalfTypes{.id = "MP117",
                                            .name = "mixed-half-types",
                                            .severity = Severity::error,
                                            .on_by_default = true,
                                            .confirmed_by = "MPT060",
                                            .triggers = {kLowDtypes, kRegions, kEngines},
                                            .check = check};

}  // namespace mp::lint
