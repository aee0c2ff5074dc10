// MP601 double-cast
//
// What   A value is narrowed and widened again with nothing in between (fp32 -> fp16 -> fp32),
//        narrowed through a second format (fp32 -> bf16 -> fp16), or rounded to half on its way
//        into fp32 memory.
// Why    The middle step throws away 13 bits (fp16) or 16 (bf16), and fp16 also the range, for
//        nothing.
// Fix    Drop the middle conversion.
// Silent half -> fp32 -> half, which loses nothing; a round trip that ends in the narrow format
//        anyway; constants that the narrow format holds exactly. In C++ and CUDA a round trip is a
//        note where both conversions are written: a program rounds on purpose, to get the bits that
//        another one gets. So is one that stays in the function, and a function that is named as
//        quantisation. In Python also tests, and values whose dtype is not proven.
// Tests  testdata/lint/MP601.md, tests/analyzer/rules/double_cast_test.cpp

#include <algorithm>
#include <array>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/python_code.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

const Cast* inner_of(const Function& f, const Cast& c) {
    if (c.inner < 0 || static_cast<std::size_t>(c.inner) >= f.casts.size()) return nullptr;
    return &f.casts[static_cast<std::size_t>(c.inner)];
}

bool is_exact_constant(const Cast& c) {
    const auto value = number_of(c.source);
    return value && rounded(c.to, *value) == *value;
}

// half(float(half(x))): rounding to the same format twice is rounding once.
bool ends_narrow_anyway(const Function& f, const Cast& outer, DType narrow) {
    return std::ranges::any_of(f.casts,
                               [&](const Cast& c) { return inner_of(f, c) == &outer && c.to == narrow; });
}

bool loses(DType from, DType through, DType to) {
    if (!is_wide(from) || !is_low_precision(through)) return false;
    return is_wide(to) || is_low_precision(to);
}

std::string path(DType a, DType b, DType c) {
    return std::string(label(a)) + " -> " + std::string(label(b)) + " -> " + std::string(label(c));
}

std::string loss(DType from, DType through) {
    const int lost = significant_bits(from) - significant_bits(through);
    std::string text =
        std::to_string(lost) + " of " + std::to_string(significant_bits(from)) + " bits are lost";
    if (through != DType::bf16) text += " and values from " + shown(overflows_from(through)) + " on overflow";
    return text;
}

bool is_named_quantiser(const Function& f) {
    return mentions(f.name.str(), "quant") || mentions(f.parent_class.str(), "quant");
}

// bf16 after fp16, or back to it through fp32: a second narrow format is an accident.
bool narrows_twice(const Function& f, const Cast& outer) {
    return !is_wide(outer.to) || std::ranges::any_of(f.casts, [&](const Cast& c) {
        return inner_of(f, c) == &outer && is_low_precision(c.to);
    });
}

// float* out; out[i] = __float2half(x): only one of the two conversions is written.
bool widens_by_itself(const Cast& outer) {
    return outer.form == CastForm::implicit &&
           (outer.output ||
            (outer.purpose == Purpose::argument && mentions(outer.function.str(), "atomicAdd")));
}

void report(const RuleContext& context, const Function& f, const SourceSpan& span, bool on_purpose,
            std::string message, std::string fix, std::vector<Note> notes, Findings& out) {
    emit(context, f,
         {.rule = "MP601",
          .severity = on_purpose || is_named_quantiser(f) ? Severity::note : Severity::warning,
          .span = span,
          .message = std::move(message),
          .fix = std::move(fix),
          .notes = std::move(notes),
          .function = {}},
         out);
}

void check_chain(const RuleContext& context, const Function& f, const Cast& outer, Findings& out) {
    const Cast* inner = inner_of(f, outer);
    if (!inner || inner->to != outer.from || !loses(inner->from, inner->to, outer.to)) return;
    if (is_exact_constant(*inner) || ends_narrow_anyway(f, outer, inner->to)) return;
    std::vector<Note> notes;
    if (inner->span.known() && inner->span.line != outer.span.line)
        notes.push_back({inner->span, "narrowed to " + std::string(label(inner->to)) + " here"});
    report(context, f, outer.span, !narrows_twice(f, outer) && !widens_by_itself(outer),
           "value goes " + path(inner->from, inner->to, outer.to) + ": " + loss(inner->from, inner->to) +
               (is_wide(outer.to) ? " for nothing" : ""),
           "drop the conversion to " + std::string(label(inner->to)), std::move(notes), out);
}

bool may_be_sink(std::string_view name) { return mentions(leaf(name), "atomicAdd"); }

// atomicAdd(float*, __float2half(g)), where the widening back is the language's own and has no cast
// fact.
void check_sink(const RuleContext& context, const Function& f, const Call& call, Findings& out) {
    if (call.args.size() < 2 || call.args[0].shape != Shape::pointer || call.args[0].dtype != DType::fp32)
        return;
    for (const Cast& c : f.casts) {
        const bool here = c.purpose == Purpose::argument && c.span.file == call.span.file &&
                          c.span.line >= call.span.line &&
                          c.span.line <= std::max(call.span.line, call.span.end_line) &&
                          leaf(c.function.str()) == leaf(call.name.str());
        if (!here || !is_wide(c.from) || !is_low_precision(c.to) || is_exact_constant(c)) continue;
        const bool chained =
            std::ranges::any_of(f.casts, [&](const Cast& o) { return inner_of(f, o) == &c; });
        if (!chained)
            report(context, f, c.span, false,
                   "value goes " + path(c.from, c.to, DType::fp32) + " memory: " + loss(c.from, c.to) +
                       " for nothing",
                   "drop the conversion to " + std::string(label(c.to)), {}, out);
    }
}

constexpr std::array<std::string_view, 6> kConversions{"half", "bfloat16", "float", "double", "to", "type"};

// x.half().float(): in Python a conversion is a call, its result the new dtype.
bool is_conversion(const Call& call) {
    return call.kind == CallKind::method && is_float(call.result.dtype) && !call.args.empty() &&
           any_of(leaf(call.name.str()), kConversions);
}

void check_calls(const RuleContext& context, TensorDTypes& dtypes, const Function& f, const Call& outer,
                 Findings& out) {
    if (!is_python(f) || !is_conversion(outer)) return;
    const Call* inner = call_of(f, outer.args[0]);
    if (!inner || !is_conversion(*inner) || inner->result.shape == Shape::module) return;
    if (code_kind(context, f.span.file) == CodeKind::test) return;  // parity on purpose
    const DType from = dtypes.of(f, inner->args[0]).dtype;
    const DType through = inner->result.dtype, to = outer.result.dtype;
    if (through == to || !loses(from, through, to)) return;
    const bool on_purpose = is_wide(to) || significant_bits(through) < significant_bits(DType::bf16);  // fp8
    report(context, f, outer.span, on_purpose,
           "value goes " + path(from, through, to) + ": " + loss(from, through) +
               (is_wide(to) ? " for nothing" : ""),
           "drop the conversion to " + std::string(label(through)), {}, out);
}

void check(const RuleContext& context, Findings& out) {
    TensorDTypes dtypes(context);
    for_each_call(context.program, last_part_in(kConversions),
                  [&](const Function& f, const Call& c) { check_calls(context, dtypes, f, c, out); });
    for_each(context, &Function::casts,
             [&](const Function& f, const Cast& c) { check_chain(context, f, c, out); });
    for_each_call(context.program, may_be_sink,
                  [&](const Function& f, const Call& c) { check_sink(context, f, c, out); });
}

}  // namespace

extern constinit const Rule kDoubleCast{.id = "MP601",
                                        .name = "double-cast",
                                        .severity = Severity::warning,
                                        .on_by_default = true,
                                        .confirmed_by = "MPT010",
                                        .triggers = {kLowDtypes, kRegions, kEngines},
                                        .check = check};

}  // namespace mp::lint
