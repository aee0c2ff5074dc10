// MPT013: an op that turns a small error of its inputs into a large one. Each op may round
// correctly and the result may still be wrong: the cosine of an angle of 600 that is off by 0.2 %, a difference of two
// close values. Near the loss such an op is harmless as long as the loss agrees with the twin's: in every good fit the
// prediction and the target nearly cancel. MPT024 judges it there. Tables that are made with the model, before
// its first forward, are judged too: the angles of a rotary embedding.

#include <algorithm>
#include <limits>
#include <map>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;
constexpr double kNearClean = 3;  // floors of the inputs: about what one or two roundings leave

// Inputs of an fp32 result were rounded to 16 bits before, if they were rounded at all.
double clean_limit(DType dtype) {
    return kNearClean * one_rounding_floor(is_low_precision(dtype) ? dtype : DType::bf16);
}

bool is_made_with_the_model(const OpSum& sum, const RunModel& m) {
    return sum.total.phase == Phase::data && !m.steps.empty() && sum.first_step == m.steps.front().step &&
           before_the_first_forward(sum.first_step, sum.total.first, m);
}

// What is left of nearly equal values, and before the next matrix product an enclosing layer adds it to something
// larger, whose error is small: the scale of DoRA minus one.
bool is_correction(const OpSum& sum, const RunModel& m, double limit) {
    const OpRecord& difference = sum.total;
    if (!is_sum_step(difference.op)) return false;
    const auto follows = [&](const OpRecord& op) {
        return op.phase == difference.phase && op.first > difference.first;
    };
    auto next_product = std::numeric_limits<decltype(difference.first)>::max();
    for (const OpSum& s : m.ops)
        if (follows(s.total) && is_matrix_product(s.total.op))
            next_product = std::min(next_product, s.total.first);
    return std::ranges::any_of(m.ops, [&](const OpSum& s) {
        const OpRecord& op = s.total;
        const bool encloses =
            difference.layer.starts_with(op.layer) && difference.layer[op.layer.size()] == '.';
        return encloses && follows(op) && op.first <= next_product && is_sum_step(op.op) && op.compared > 0 &&
               relative(op.error_squares, op.twin_squares) < limit;
    });
}

bool amplifies(const OpSum& sum, const RunModel& m, double limit) {
    const OpRecord& op = sum.total;
    return (op.phase == Phase::forward || is_made_with_the_model(sum, m)) && op.loc_compared >= kFewest &&
           op.input_error > 0 && op.input_error <= clean_limit(op.dtype) && inherited_error(op) >= limit;
}

// The first step in which the results of the op's layer are off by `limit`, where the map has a column for each step;
// else the worst step.
Step first_step_above(const RunModel& m, const OpSum& sum, double limit) {
    const Step worst = sum.worst_cum.step.known() ? sum.worst_cum.step : sum.first_step;
    const std::vector<Cell>* const cells = cells_by_step(m, sum.total);
    if (!cells) return worst;
    const double floors = floor_ratio(limit, sum.total.dtype);
    const auto cell = std::ranges::find_if(*cells, [&](const Cell& each) { return each.cum_phi >= floors; });
    return cell == cells->end() ? worst : Step{cell - cells->begin()};
}

Finding amplified(const Case& c, const std::vector<const OpSum*>& ops) {
    const OpSum& worst =
        **std::ranges::max_element(ops, {}, [](const OpSum* s) { return inherited_error(s->total); });
    const OpRecord& op = worst.total;
    const double error = inherited_error(op);
    const bool fails = error >= c.limits.amplified_fail;
    Finding f = finding_at("MPT013", fails ? Severity::error : Severity::warning, op);
    f.limit = fails ? c.limits.amplified_fail : c.limits.amplified_warn;
    f.step = first_step_above(c.model, worst, f.limit);
    f.rank = worst.worst_cum.rank;
    f.value = error;
    f.unit = "share";
    f.importance = importance::kAmplifiedError(std::min(error, 1.0));
    const std::string layer = op.layer.empty() ? std::string("an unnamed layer") : shown(op.layer);
    f.message = shown(base_name(op.op)) + " of " + layer + " turns an input error of " +
                percent(op.input_error) + " into " + percent(error) + " (limit " + percent(f.limit) +
                "), over " + counted(op.loc_compared, "element");
    for (const OpSum* s : ops) {
        if (s != &worst) f.message += "; so does " + shown(base_name(s->total.op));
    }
    f.advice = "compute the inputs of " + shown(base_name(op.op)) +
               " in fp32 from their beginning: its own " + "roundings are not the cause";
    return f;
}

}  // namespace

void judge_amplified(Case& c, const std::set<std::string>& explained) {
    std::map<std::string, std::vector<const OpSum*>> layers;
    const bool has_loss = c.out.loss.answer != LossAgreement::Answer::not_compared;
    for (const OpSum& sum : c.model.ops) {
        if (!amplifies(sum, c.model, c.limits.amplified_warn)) continue;
        if (explained.contains(sum.total.layer)) continue;
        if (is_correction(sum, c.model, c.limits.amplified_warn)) continue;
        if (!has_loss || !near_the_loss(sum.total, c.model)) layers[sum.total.layer].push_back(&sum);
    }
    for (const auto& [layer, ops] : layers) c.out.findings.push_back(amplified(c, ops));
}

}  // namespace mp::trace
