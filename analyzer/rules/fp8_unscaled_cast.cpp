// MP307 fp8-unscaled-cast
//
// What   A tensor is cast to fp8 without a scale or a clamp before it, or a CUDA conversion is told
//        not to saturate.
// Why    e4m3 ends at 448 and e5m2 at 57344: beyond, the value is NaN or inf, or it saturates,
//        depending on the library. Below 2^-10 (e4m3) it is 0.
// Fix    Multiply by a scale that is derived from the largest magnitude, clamp, then cast.
// Silent A product, a quotient or a clamp before the cast, or a test that the largest value fits;
//        results that are bounded by themselves; library wrappers that scale. A parameter, whose
//        caller may have scaled it, is a warning.
// Tests  testdata/lint/MP307.md, tests/analyzer/rules/fp8_unscaled_cast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint {
namespace {

// Scaled, clamped, or small by nature.
bool is_tamed(const Call& call) {
    constexpr std::array<std::string_view, 11> kOps{
        "mul", "div", "clamp_min", "round", "zeros", "minimum", "maximum", "lerp", "exp2", "ldexp", "where"};
    constexpr std::array<std::string_view, 10> kFactories{
        "torch.zeros", "torch.ones",       "torch.empty",      "torch.rand",       "torch.randn",
        "torch.full",  "torch.zeros_like", "torch.empty_like", "torch.randn_like", "torch.eye"};
    const Traits traits = traits_of(call.op);
    return traits.has(Trait::bounded) || traits.has(Trait::caps) || any_of(call.op.name(), kOps) ||
           any_of(call.name.str(), kFactories);
}

constexpr std::array<std::string_view, 3> kConversions{"to", "type", "_to_copy"};

bool converts(const Call& call) { return !call.args.empty() && any_of(leaf(call.name.str()), kConversions); }

DType converted_to(const Call& call) {
    if (is_fp8(call.result.dtype)) return call.result.dtype;
    for (std::size_t i = 1; i < call.args.size(); ++i)
        if (call.args[i].shape == Shape::dtype && is_fp8(call.args[i].dtype)) return call.args[i].dtype;
    return DType::unknown;
}

// x + 1: neither scales the value nor hides where it comes from.
bool shifts(const Call& call) {
    return call.args.size() == 2 && (call.op.name() == "add" || call.op.name() == "sub") &&
           number_of(call.args[1]).has_value();
}

// What the cast value is made of, where the function shows it.
enum class Source { tamed, raw, unknown };

Source source_of(const Function& f, const Operand& value) {
    const Call* made = producer(f, value);
    while (made && (converts(*made) || shifts(*made))) {
        if (is_fp8(made->args.front().dtype)) return Source::tamed;
        made = producer(f, made->args.front());
    }
    if (!made) return Source::unknown;
    if (is_tamed(*made)) return Source::tamed;
    // An op computes new values; any other function may have scaled them.
    return made->op.known() ? Source::raw : Source::unknown;
}

// assert x.max() <= 448, and the same with abs() or amax: the program knows that the values fit.
bool is_checked(const Function& f, const Call& cast, DType to) {
    constexpr std::array<std::string_view, 2> kBelow{"le", "lt"};
    constexpr std::array<std::string_view, 2> kLargest{"max", "amax"};
    const Operand& value = cast.args.front();
    return std::ranges::any_of(f.calls, [&](const Call& test) {
        if (&test >= &cast || test.args.size() != 2 || !any_of(test.op.name(), kBelow)) return false;
        const auto bound = number_of(test.args[1]);
        const Call* largest = call_of(f, test.args[0]);
        if (!bound || *bound > largest_value(to) || !largest || !any_of(largest->op.name(), kLargest))
            return false;
        const Operand* of = largest->args.empty() ? nullptr : &largest->args.front();
        if (const Call* inner = of ? call_of(f, *of) : nullptr;
            inner && inner->op.name() == "abs" && !inner->args.empty())
            of = &inner->args.front();
        return of && same_value(*of, value);
    });
}

// if w.dtype == torch.float8_e4m3fn: values that are fp8 already come back from an op that has no fp8.
bool asks_for_fp8(const Function& f, const Call& cast) {
    return std::ranges::any_of(f.calls, [&](const Call& test) {
        return &test < &cast && test.op.name() == "eq" &&
               std::ranges::any_of(
                   test.args, [](const Operand& o) { return o.shape == Shape::dtype && is_fp8(o.dtype); });
    });
}

std::string message_of(DType dtype, const Operand& value) {
    return (value.name.empty() ? "a tensor" : "'" + std::string(value.name.str()) + "'") + " is cast to " +
           std::string(label(dtype)) + " without a scale: values above " + shown(largest_value(dtype)) +
           " become nan, inf or the limit, and those below " + shown(vanishes_below(dtype), 3) + " become 0";
}

void report(const RuleContext& context, const Function& f, const SourceSpan& span, Severity severity,
            std::string message, Findings& out) {
    emit(context, f,
         {.rule = "MP307",
          .severity = severity,
          .span = span,
          .message = std::move(message),
          .fix = "multiply by a scale derived from the largest magnitude and clamp before the cast",
          .notes = {},
          .function = {}},
         out);
}

void tensor_cast(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    const DType dtype = converted_to(call);
    if (!is_fp8(dtype) || call.args.empty()) return;
    const Operand& value = call.args.front();
    if (is_fp8(value.dtype) || is_integer(value.dtype)) return;
    const Source source = source_of(f, value);
    if (source == Source::tamed || (source == Source::unknown && value.param == kNone)) return;
    // Scaled by an assignment in place: x.mul_(scale), x.clamp_(-448, 448).
    const bool in_place = std::ranges::any_of(f.calls, [&](const Call& other) {
        return &other < &call && other.in_place && !other.args.empty() && is_tamed(other) &&
               same_value(other.args.front(), value);
    });
    if (in_place || is_checked(f, call, dtype) || asks_for_fp8(f, call)) return;
    // x.to(fp8).to(torch.float32): rounded on purpose, to see what fp8 makes of a scale or of a weight.
    const Call* widened = consumer(f, call, [](const Call& c) { return is_wide(c.result.dtype); });
    const Severity given = widened ? Severity::note : Severity::warning;
    report(context, f, call.span, source == Source::raw ? Severity::error : given, message_of(dtype, value),
           out);
}

// __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3)
void cuda_conversion(const RuleContext& context, const Function& f, const Cast& cast, Findings& out) {
    if (!cast.unsaturated || !is_fp8(cast.to)) return;
    report(context, f, cast.span, Severity::error,
           "a conversion to " + std::string(label(cast.to)) + " does not saturate: values above " +
               shown(largest_value(cast.to)) + " become " + (cast.to == DType::e4m3 ? "nan" : "inf"),
           out);
}

void check(const RuleContext& context, Findings& out) {
    for_each_call(context.program, last_part_in(kConversions), [&](const Function& f, const Call& call) {
        if (is_python(f)) tensor_cast(context, f, call, out);
    });
    for_each(context, &Function::casts,
             [&](const Function& f, const Cast& cast) { cuda_conversion(context, f, cast, out); });
}

}  // namespace

extern constinit const Rule kFp8UnscaledCast{.id = "MP307",
                                             .name = "fp8-unscaled-cast",
                                             .severity = Severity::error,
                                             .on_by_default = true,
                                             .confirmed_by = "MPT001",
                                             .triggers = {kLowDtypes},
                                             .check = check};

}  // namespace mp::lint
