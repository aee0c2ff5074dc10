// MPT026: gradients that depart from their fp32 twins because an op of backward makes a large error out of one rounding
// of its inputs: it subtracts nearly equal values. Each op rounds correctly, and the loss may look sound for a long
// time. Gradients cancel in sound runs too (a bias before a batch norm has none), so the op must explain most of the
// error of all gradients. What run and twin have by going different ways is no error of an op: only the amplification
// counts, which depends on the values and not on the size of the error, and an op that chooses by values (the backward
// of relu or of max pooling) is no cause.

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/op_traits.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/gradient_shares.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;  // compared elements
// Where so much cancels, fp32 has no 8 bits right either: the result is 0 in theory, and small beside what it joins.
constexpr double kZeroInTheory = 65536;
constexpr double kCancels = 16;  // times; batch norms of sound runs make an error a few times larger

struct Suspect {
    const OpSum* sum = nullptr;
    double error = 0;  // that one rounding leaves in its results, 1 at most
    double share = 0;  // of the gradients' error
};

// The error of the op's layer in the first step, when the weights of run and twin are the same: it is made of roundings
// alone. 0: not known.
double error_at_first(const OpRecord& op, const RunModel& m) {
    const std::vector<Cell>* cells = cells_by_step(m, op);
    if (!cells || cells->empty()) return 0;
    return std::max(0.0, static_cast<double>(cells->front().cum_phi)) * one_rounding_floor(op.dtype);
}

// What one rounding of the inputs makes of the op's results, or what several ops in turn, of which this one subtracts
// nearly equal values. What the op introduces itself is MPT010's.
double amplified_by(const OpRecord& op, const RunModel& m) {
    const double inherited = inherited_error(op);
    if (op.amplification <= 1) return 0;
    const double from_first = op.amplification >= kCancels ? error_at_first(op, m) : 0;
    return std::min({std::max(cost_of_rounding(op, m), from_first), inherited, 1.0});
}

// The first op in backward that explains most of the gradients' error.
Suspect suspect_of(const Case& c) {
    Suspect found;
    const GradientShares shares(c.model);
    for (const OpSum& sum : c.model.ops) {
        const OpRecord& op = sum.total;
        if (op.phase != Phase::backward || op.loc_compared < kFewest || op.amplification > kZeroInTheory)
            continue;
        if (traits_of_recorded(op.op).has(Trait::chooses)) continue;  // another choice, and no difference
        const double error = amplified_by(op, c.model);
        if (error < c.limits.amplified_warn) continue;
        const double share = shares.of(op, error).first;
        if (share < c.limits.update_share) continue;
        if (!found.sum || op.first < found.sum->total.first) found = {&sum, error, share};
    }
    return found;
}

const TensorSum* worst_gradient(const RunModel& m) {
    const TensorSum* worst = nullptr;
    for (const TensorSum& t : m.tensors) {
        if (t.kind == TensorKind::gradient && (!worst || t.first_error_squares > worst->first_error_squares))
            worst = &t;
    }
    return worst;
}

}  // namespace

void judge_gradients(Case& c) {
    if (c.model.step_count > 0 && c.model.skipped_steps == c.model.step_count) return;  // nothing used them
    const TensorSum* const worst = worst_gradient(c.model);
    // Where values cancel that are 0 in theory, the gradients may all be right.
    if (!worst || relative(worst->first_error_squares, worst->first_twin_squares) < c.limits.amplified_warn)
        return;
    const Suspect suspect = suspect_of(c);
    if (!suspect.sum) return;
    const OpRecord& op = suspect.sum->total;
    const bool fails = suspect.error >= c.limits.amplified_fail;
    const std::string name = shown(base_name(op.op));
    Finding f = finding_at("MPT026", fails ? Severity::error : Severity::warning, op);
    f.step = suspect.sum->first_step;
    f.value = suspect.error;
    f.limit = fails ? c.limits.amplified_fail : c.limits.amplified_warn;
    f.unit = "share";
    f.importance = importance::kGradientDeparture(suspect.error);
    f.message = place_text(op) + (is_sum_step(op.op) ? " subtracts nearly equal values: an" : ": an") +
                " error of its inputs grows " + figure(std::round(op.amplification)) + "-fold, so " +
                (suspect.error > cost_of_rounding(op, c.model) ? "the roundings before it cost "
                                                               : "one rounding of them costs ") +
                percent(suspect.error) + " (limit " + percent(f.limit) + "); it explains " +
                percent(suspect.share) + " of the gradients' error, most of it in " + shown(worst->name) +
                ", which is off by " +
                percent(relative(worst->first_error_squares, worst->first_twin_squares));
    f.advice = "compute " + name +
               " and its inputs in fp32, or subtract what they have in common before they "
               "are rounded";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
