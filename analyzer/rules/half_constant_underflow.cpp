// MP302 half-constant-underflow
//
// What   A small constant is converted to fp16 or fp8 and becomes 0, or a subnormal where it guards
//        a division.
// Why    fp16 has nothing between 0 and 6e-08, so x + 1e-8 is x and 0 / 0 is NaN; below 6.1e-05 a
//        value keeps fewer bits, and units that flush subnormals read 0.
// Fix    Add the epsilon in float, or use one that the format holds.
// Silent Epsilons that meet float values; bf16, which has fp32's range; zero itself; a tensor
//        multiplied by a small number (the product is rounded, not the number); the start of a maximum
//        (-FLT_MIN), for which 0 does as well; the default epsilon of a norm of random numbers. In Python a
//        subnormal is a note, and so is what is not certain to become 0.
// Tests  testdata/lint/MP302.md, tests/analyzer/rules/half_constant_underflow_test.cpp

#include <algorithm>
#include <cmath>

#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/numbers.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

bool is_guard(Role role) { return role == Role::added || role == Role::clamp || role == Role::divisor; }

Severity severity_of(const ConstantUse& use, bool vanishes) {
    const bool written = !use.call || use.constant;  // not the default of a norm, which few vectors come near
    if (vanishes && use.proven && written && use.role != Role::compared) return Severity::error;
    // Python guards what is rarely 0, and PyTorch keeps subnormals.
    return use.call ? Severity::note : Severity::warning;
}

std::string message_of(const ConstantUse& use, bool vanishes) {
    std::string number = shown(use.value, 3);
    const std::string dtype(label(use.dtype));
    if (use.call && !use.constant) number = "the default eps " + number;
    if (vanishes)
        return number + " is 0 in " + dtype + " (anything up to " + shown(vanishes_below(use.dtype), 3) +
               " is)" + (is_guard(use.role) ? ": what it guards is unguarded" : "");
    return number + " is subnormal in " + dtype + " (below " + shown(smallest_normal(use.dtype), 3) +
           "): it becomes " + shown(rounded(use.dtype, use.value), 3) +
           ", and 0 where subnormals are flushed";
}

// normalize(torch.randn(n, 32)): no such vector is near 0.
bool guards_random_numbers(const ConstantUse& use) {
    if (!use.call || use.constant || !use.met) return false;
    const Call* const made = producer(*use.function, *use.met);
    return made && makes_random_numbers(*made);
}

void check(const RuleContext& context, Findings& out) {
    for (const ConstantUse& use : constant_uses(context)) {
        if (use.value == 0 || use.role == Role::max_identity || guards_random_numbers(use)) continue;
        if (use.tensor && use.role == Role::multiplier) continue;
        const double kept = rounded(use.dtype, use.value);
        const bool vanishes = kept == 0;
        // One that the format holds exactly was chosen for it.
        const bool is_exact = std::fabs(kept - use.value) < 1e-5 * std::fabs(use.value);
        const bool subnormal =
            std::fabs(use.value) < smallest_normal(use.dtype) && !is_exact && is_guard(use.role);
        if (!vanishes && !subnormal) continue;
        emit(context, *use.function,
             {.rule = "MP302",
              .severity = severity_of(use, vanishes),
              .span = use.span,
              .message = message_of(use, vanishes),
              .fix = "do this step in float, or use an epsilon of at least " +
                     shown(smallest_normal(use.dtype), 3),
              .notes = use.notes,
              .function = {}},
             out);
    }
}

}  // namespace

extern constinit const Rule kHalfConstantUnderflow{.id = "MP302",
                                                   .name = "half-constant-underflow",
                                                   .severity = Severity::error,
                                                   .on_by_default = true,
                                                   .confirmed_by = "MPT030",
                                                   .triggers = {kLowDtypes, kRegions, kEngines},
                                                   .check = check};

}  // namespace mp::lint
