// MPT028: fp32 parameters that hold 16-bit values whenever a step begins, because the program rounds them after each
// update. Each step loses what one rounding takes. The adapter finds them by their bits, and looks for a master that
// has the bits that are lost. With several ranks, the master may be on another one.

#include <algorithm>
#include <vector>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/dtype.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// Values that were loaded are 16-bit values once, and those that stay what they were, such as a bias of zeros, always.
bool is_rounded(const TensorSum& t) {
    return t.kind == TensorKind::parameter && t.mastered == 0 && t.first_rounded < t.last_rounded &&
           t.rounded_change_squares > 0 && t.change_squares > 0;
}

// Then fp32 parameters are the masters of 16-bit weights. Those that are made anew in every step are MPT040.
bool is_rounding_of_master(const TensorSum& t) {
    return t.kind == TensorKind::parameter && is_low_precision(t.last.dtype) && t.mastered > 0;
}

double lost(const TensorSum* t) { return relative(t->rounding_squares, t->rounded_change_squares); }
std::uint64_t elements(const TensorSum* t) { return t->last.elements; }

std::string_view layer_of(std::string_view parameter) {
    const std::size_t dot = parameter.rfind('.');
    return parameter.substr(0, dot == parameter.npos ? 0 : dot);
}

}  // namespace

void judge_rounded(Case& c) {
    std::vector<const TensorSum*> all;
    for (const TensorSum& t : c.model.tensors)
        if (is_rounded(t)) all.push_back(&t);
    if (all.empty() || std::ranges::any_of(c.model.tensors, is_rounding_of_master)) return;
    // Few values, such as the ones of a gain, fit into a format by chance. The largest parameter shows the program's.
    const DType narrow = (*std::ranges::max_element(all, {}, elements))->narrow;
    std::erase_if(all, [narrow](const TensorSum* t) { return t->narrow != narrow; });
    const TensorSum* const worst = *std::ranges::max_element(all, {}, lost);
    const double share = lost(worst);
    const bool fails = share >= c.limits.amplified_fail;
    const std::string format(name_of(narrow));
    Finding f = finding("MPT028", fails ? Severity::error : Severity::warning);
    f.layer = layer_of(worst->name);
    f.phase = Phase::optimizer;
    f.step = worst->first_rounded;
    f.value = share;
    f.limit = fails ? c.limits.amplified_fail : 0;
    f.unit = "share";
    f.importance = importance::kRoundedMasters(std::min(share, 1.0));
    f.message = "fp32 parameter " + shown(worst->name) + " holds only values of " + format +
                " whenever a step begins, and no memory has the bits that its fp32 twin has: rounding leaves "
                "an error of " +
                percent(share) + " in each update";
    if (all.size() > 1)
        f.message += "; the same holds for " + counted(std::uint64_t{all.size()} - 1, "other parameter");
    f.advice = "do not round the weights to " + format +
               " after a step: keep the fp32 values, and round a copy for the forward, as autocast does";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
