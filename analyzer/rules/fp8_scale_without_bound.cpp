// MP308 fp8-scale-without-bound
//
// What   A tensor is scaled for fp8 by a limit over its largest magnitude, or divided by that magnitude over a
//        limit, and nothing keeps the magnitude above zero.
// Why    A tensor or a block of zeros has the largest magnitude 0: the scale is inf, and 0 * inf is NaN in the
//        quantised tensor. Padding, dead experts and LoRA's B at its start are all zero.
// Fix    amax.clamp(min=1e-12), or torch.where(amax > 0, limit / amax, 1.0).
// Silent A clamp, maximum, where, added epsilon or comparison on the magnitude or the scale; magnitudes that come
//        from elsewhere.
// Tests  testdata/lint/MP308.md, tests/analyzer/rules/fp8_scale_without_bound_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

constexpr int kFarthest = 8;

constexpr std::array<std::string_view, 2> kConversions{"to", "type"};

bool is_cast(const Call& call) {
    constexpr std::array<std::string_view, 4> kNames{"to", "float", "double", "type"};
    return any_of(leaf(call.name.str()), kNames) && !call.args.empty();
}

bool converts_to_fp8(const Call& call) {
    if (is_fp8(call.result.dtype)) return true;
    return std::ranges::any_of(call.args,
                               [](const Operand& o) { return o.shape == Shape::dtype && is_fp8(o.dtype); });
}

// The op that made the value, behind moves and casts.
const Call* maker(const Function& f, const Operand& value) {
    const Call* made = producer(f, value);
    for (int step = 0; made && step < kFarthest && is_cast(*made); ++step)
        made = producer(f, made->args.front());
    return made;
}

// x.abs().max(), x.abs().amax(dim=-1), and the values of x.abs().max(dim=-1)
const Call* largest_magnitude(const Function& f, const Operand& value) {
    const Call* call = maker(f, value);
    if (call && indexes(*call)) call = maker(f, call->args.front());
    if (!call || call->args.empty() || (call->op.name() != "amax" && call->op.name() != "max"))
        return nullptr;
    const Call* magnitude = maker(f, call->args.front());
    return magnitude && magnitude->op.name() == "abs" ? call : nullptr;
}

// Whether something in the function looks at the value, or changes it in place.
bool is_guarded(const Function& f, const Operand& value) {
    return std::ranges::any_of(f.calls, [&](const Call& call) {
        constexpr std::array<std::string_view, 9> kTests{"eq", "ne",    "gt",          "ge",        "lt",
                                                         "le", "where", "masked_fill", "nan_to_num"};
        const bool looks = any_of(call.op.name(), kTests) || traits_of(call.op).has(Trait::finite_test) ||
                           leaf(call.name.str()) == "__setitem__" ||
                           (call.in_place && traits_of(call.op).has(Trait::caps));
        return looks && std::ranges::any_of(call.args, [&](const Operand& o) {
                   return (value.call != kNone && o.call == value.call) ||
                          (!value.name.empty() && o.name == value.name);
               });
    });
}

bool is_unbounded(const Function& f, const Operand& magnitude) {
    return largest_magnitude(f, magnitude) && !is_guarded(f, magnitude);
}

// limit / amax, or amax / limit where it is used as a divisor.
const Call* unbounded_scale(const Program& program, const Function& f, const Operand& scale, bool divides,
                            int left) {
    const Call* made = maker(f, scale);
    if (!made || left == 0 || is_guarded(f, scale)) return nullptr;
    if (made->op.name() == "div" && made->args.size() >= 2)
        return is_unbounded(f, made->args[divides ? 0 : 1]) ? made : nullptr;
    if (made->op.name() == "reciprocal" && !made->args.empty())
        return unbounded_scale(program, f, made->args.front(), !divides, left - 1);
    const Function* callee = program.definition(made->callee);
    if (!callee || made->kind == CallKind::constructor || callee->returned.size() != 1) return nullptr;
    return unbounded_scale(program, *callee, callee->returned.front(), divides, left - 1);
}

void check_cast(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (!is_python(f) || call.args.empty() || !converts_to_fp8(call)) return;
    // Tests and benchmarks quantise random numbers.
    if (code_kind(context, f.span.file) != CodeKind::product) return;
    const Call* scaled = maker(f, call.args.front());
    while (scaled && traits_of(scaled->op).has(Trait::caps) && !scaled->args.empty())
        scaled = maker(f, scaled->args.front());
    const bool divides = scaled && scaled->op.name() == "div";
    if (!scaled || scaled->args.size() < 2 || (!divides && scaled->op.name() != "mul")) return;
    for (std::size_t i = divides ? 1 : 0; i < 2; ++i) {
        const Call* scale = unbounded_scale(context.program, f, scaled->args[i], divides, 3);
        if (!scale) continue;
        const Function* owner = context.program.owner(*scale);
        emit(context, owner ? *owner : f,
             {.rule = "MP308",
              .severity = Severity::warning,
              .span = scale->span,
              .message = "nothing keeps the largest magnitude above 0: for a tensor of zeros the scale is " +
                         std::string(divides ? "0, and 0 / 0" : "inf, and 0 * inf") + " is NaN in fp8",
              .fix = "clamp the magnitude first: amax.clamp(min=1e-12)",
              .notes = {{call.span, "the scaled tensor is cast to fp8 here"}},
              .function = {}},
             out);
        return;
    }
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, last_part_in(kConversions),
                  [&](const Function& f, const Call& call) { check_cast(context, f, call, out); });
}

}  // namespace

extern constinit const Rule kFp8ScaleWithoutBound{.id = "MP308",
                                                  .name = "fp8-scale-without-bound",
                                                  .severity = Severity::warning,
                                                  .on_by_default = true,
                                                  .confirmed_by = "MPT001",
                                                  .triggers = {kLowDtypes},
                                                  .check = check};

}  // namespace mp::lint
