// MP602 implicit-half-narrowing
//
// What   The language narrows a float to fp16, bf16 or fp8 without a word: a converting constructor
//        or an assignment operator of the half class.
// Why    No compiler warns, because CUDA's half types are classes; 13 of 24 bits go unseen.
// Fix    Write the conversion (__float2half_rn) where it is meant, keep float where it is not.
// Silent Explicit conversions; the elements a kernel stores as its result, and what a device
//        function gives back through a pointer; constants (MP301 and MP302 have those). Off by
//        default: a note, and a warning for sums and statistics.
// Tests  testdata/lint/MP602.md, tests/analyzer/rules/implicit_half_narrowing_test.cpp

#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// A kernel that writes one scalar (*rate = ...) keeps state; one that writes elements gives its
// result.
bool is_one_scalar(const Cast& c) {
    const std::string_view target = c.target.str();
    return target.starts_with('*') && target.find_first_of("+[") == std::string_view::npos;
}

bool is_final_store(const Function& f, const Cast& c) {
    if (!c.output) return false;
    if (f.kind == FunctionKind::kernel) return !is_one_scalar(c);
    return f.kind == FunctionKind::device || f.kind == FunctionKind::host_device;
}

void check(const RuleContext& context, Findings& out) {
    for_each(context, &Function::casts, [&](const Function& f, const Cast& c) {
        const bool implicit = c.form == CastForm::implicit || c.form == CastForm::assign;
        if (!implicit || !is_wide(c.from) || !is_low_precision(c.to)) return;
        if (!c.source.constant.empty() || is_final_store(f, c)) return;
        const int bits = significant_bits(c.from);
        emit(context, f,
             {.rule = "MP602",
              .severity = c.source.stat == Stat::none ? Severity::note : Severity::warning,
              .span = c.span,
              .message = std::string(label(c.from)) + " becomes " + std::string(label(c.to)) +
                         " without a conversion in the source" +
                         (c.target.empty() ? "" : " (into" + quoted(c.target.str()) + ")") + ": it keeps " +
                         std::to_string(significant_bits(c.to)) + " of " + std::to_string(bits) + " bits",
              .fix = "keep it in float, or write the conversion (__float2half_rn) to show that it "
                     "is meant",
              .notes = {},
              .function = {}},
             out);
    });
}

}  // namespace

extern constinit const Rule kImplicitHalfNarrowing{.id = "MP602",
                                                   .name = "implicit-half-narrowing",
                                                   .severity = Severity::warning,
                                                   .on_by_default = false,
                                                   .confirmed_by = "MPT010",
                                                   .triggers = Triggers::cpp_only(),
                                                   .check = check};

}  // namespace mp::lint
