// MPT024: the loss of the run is above the loss of its fp32 twin, and stays there. Two sound runs that differ by
// roundings go different ways after some time, but neither is better than the other. A departure is a finding if it has
// one sign, and an error if an op explains it: one that turns a single rounding of its inputs, or its own rounding,
// into an error as large as the departure. Most often that is the criterion, which subtracts nearly equal values. Such
// a criterion is a finding too if the loss is below its twin's, and if it makes the loss noise: off in both directions
// from the first steps on, when the weights of both are still the same.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kFewestSteps = 6, kFewestInWindow = 3;
constexpr double kCancels = 4;   // times that an op which subtracts nearly equal values makes an error larger
constexpr double kSudden = 0.1;  // what the steps before may be apart, of what the last ones are
constexpr double kOneSided = 0.9;    // share of the window's steps that have the sign of the mean
constexpr double kFarFromNoise = 3;  // times the noise floor
constexpr double kLeastWarn = 0.01, kLeastFail = 0.025;  // with a noise floor
constexpr double kLargeGradientError = 0.25;  // of all gradients together; sound 16-bit runs stay below
constexpr double kUnexplained = 1;            // without a cause the loss must be twice the twin's ...
constexpr double kUnexplainedSpan = 1e-3;     // ... and the gap this share of what the twin's loss moved

using Answer = LossAgreement::Answer;

// A measured noise floor replaces the limits, which stand for the runs whose floor is not known.
double warn_limit(const LossAgreement& a, const Limits& limits) {
    return a.noise < 0 ? limits.loss_warn : std::max(kLeastWarn, kFarFromNoise * a.noise);
}
double fail_limit(const LossAgreement& a, const Limits& limits) {
    return a.noise < 0 ? limits.loss_fail : std::max(kLeastFail, kFarFromNoise * a.noise);
}

// The steps with a loss and its twin's of one optimizer in one training of the process. Losses of other networks and of
// other trainings are other figures.
struct LossSeries {
    std::int32_t optimizer = 0;
    int training = 0;
    std::vector<const StepSummary*> steps;
};

std::vector<LossSeries> series_of(const RunModel& m) {
    std::vector<LossSeries> out;
    const auto add = [&](std::int32_t optimizer, const std::vector<StepSummary>& steps) {
        for (const StepSummary& s : steps) {
            if (!s.has_loss || !s.has_twin) continue;
            const auto training = static_cast<int>(
                std::ranges::count_if(m.trainings, [&s](Step start) { return start <= s.step; }));
            if (out.empty() || out.back().optimizer != optimizer || out.back().training != training)
                out.push_back({optimizer, training, {}});
            out.back().steps.push_back(&s);
        }
    };
    add(0, m.steps);
    for (const OptimizerSteps& other : m.others) add(other.optimizer, other.steps);
    return out;
}

std::vector<const StepSummary*> not_skipped(std::vector<const StepSummary*> steps) {
    std::erase_if(steps, [](const StepSummary* s) { return s->skipped > 0; });
    return steps;
}

Answer lost_as(const StepSummary& s) {
    if (std::isfinite(s.loss)) return std::isfinite(s.twin_loss) ? Answer::agrees : Answer::lost_in_twin;
    return std::isfinite(s.twin_loss) ? Answer::lost : Answer::lost_in_both;
}

double span_of(const std::vector<const StepSummary*>& steps) {
    const auto [low, high] = std::ranges::minmax(steps, {}, &StepSummary::twin_loss);
    return high->twin_loss - low->twin_loss;
}

// How far a step's loss is above its twin's: as a share of `scale`, or of the twin's loss if `scale` is 0.
double apart_in(const StepSummary& s, double scale) {
    return (s.loss - s.twin_loss) / (scale > 0 ? scale : s.twin_loss);
}

// The first step from which on nearly all steps are apart with the same sign, and by a quarter of it.
Step beginning(const std::vector<const StepSummary*>& steps, double apart, double scale) {
    std::size_t far = 0;
    Step first;
    for (std::size_t n = 1; n <= steps.size(); ++n) {
        const StepSummary& s = *steps[steps.size() - n];
        if (apart_in(s, scale) / apart < 0.25) continue;
        ++far;
        if (static_cast<double>(far) >= kOneSided * static_cast<double>(n)) first = s.step;
    }
    return first;
}

double scale_of(const std::vector<const StepSummary*>& steps) {
    const bool positive = std::ranges::all_of(steps, [](const StepSummary* s) { return s->twin_loss > 0; });
    return positive ? 0 : span_of(steps);
}

// The last `window` steps.
LossAgreement compared(const std::vector<const StepSummary*>& steps, std::size_t window,
                       const Limits& limits) {
    LossAgreement out;
    double real = 0, twin = 0, noise = 0;
    for (std::size_t i = steps.size() - window; i < steps.size(); ++i) {
        const StepSummary& s = *steps[i];
        if (const Answer answer = lost_as(s); answer != Answer::agrees) out.answer = answer;
        real += s.loss / static_cast<double>(window);
        twin += s.twin_loss / static_cast<double>(window);
        noise = s.noise < 0 || noise < 0 ? -1 : noise + s.noise / static_cast<double>(window);
    }
    out.steps = window;
    out.loss = real;
    out.twin = twin;
    if (out.answer != Answer::not_compared) return out;
    const double scale = scale_of(steps);
    const double unit = scale > 0 ? scale : twin;
    if (unit > 0) out.apart = (real - twin) / unit;
    if (unit > 0 && noise >= 0) out.noise = noise / unit;
    for (std::size_t i = unit > 0 ? steps.size() - window : steps.size(); i < steps.size(); ++i)
        out.farthest = std::max(out.farthest, std::fabs(apart_in(*steps[i], scale)));
    out.answer = Answer::agrees;
    const auto same =
        std::ranges::count_if(steps | std::views::drop(steps.size() - window),
                              [&](const auto* s) { return (s->loss - s->twin_loss) * (real - twin) > 0; });
    out.one_sided = static_cast<double>(same) >= kOneSided * static_cast<double>(window);
    if (std::fabs(out.apart) < warn_limit(out, limits)) return out;
    out.answer = Answer::scattered;
    if (!out.one_sided) return out;
    out.answer = real > twin ? Answer::above : Answer::below;
    out.begins = beginning(steps, out.apart, scale);
    return out;
}

// Whether a loss is farther from its twin's than another.
bool is_farther(const LossAgreement& a, const LossAgreement& than) {
    const auto place = [](const LossAgreement& of) {
        constexpr std::array kOrder{Answer::not_compared, Answer::agrees,       Answer::scattered,
                                    Answer::lost_in_twin, Answer::lost_in_both, Answer::below,
                                    Answer::above,        Answer::lost};
        return std::pair(std::ranges::find(kOrder, of.answer) - kOrder.begin(), std::fabs(of.apart));
    };
    return place(a) > place(than);
}

double median_apart(std::span<const StepSummary* const> steps, double scale) {
    std::vector<double> apart;
    for (const StepSummary* s : steps)
        if (lost_as(*s) == Answer::agrees && std::isfinite(s->loss))
            apart.push_back(std::fabs(apart_in(*s, scale)));
    if (apart.empty()) return 0;
    std::ranges::nth_element(apart, apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2));
    return apart[apart.size() / 2];
}

// A loss that agreed, and is far above its twin's since less than `quarter` steps.
std::optional<LossAgreement> sudden_departure(const std::vector<const StepSummary*>& steps,
                                              std::size_t quarter, const Limits& limits) {
    for (std::size_t window = quarter * 3 / 4; window >= kFewestSteps; window = window * 3 / 4) {
        const LossAgreement last = compared(steps, window, limits);
        if (last.answer != Answer::above || last.apart < fail_limit(last, limits)) continue;
        const auto begun = std::ranges::find(steps, last.begins, &StepSummary::step) - steps.begin();
        const auto before = std::span(steps).first(static_cast<std::size_t>(begun));
        if (before.size() < kFewestSteps) continue;
        if (median_apart(before.last(std::min(before.size(), 2 * window)), scale_of(steps)) <
            kSudden * last.apart)
            return compared(steps, steps.size() - before.size(), limits);
    }
    return std::nullopt;
}

LossAgreement agreement_in(const std::vector<const StepSummary*>& all, const Limits& limits) {
    LossAgreement out;
    // A skipped step may be the one that lost the loss.
    if (out.answer = lost_as(*all.back()); out.answer != Answer::agrees) return out;
    out.answer = Answer::not_compared;
    const auto steps = not_skipped(all);
    if (steps.empty()) return out;
    const std::size_t quarter = std::min(steps.size(), std::max(steps.size() / 4, kFewestInWindow));
    out = compared(steps, quarter, limits);
    const bool since_later = out.answer == Answer::above && out.begins > steps[steps.size() - quarter]->step;
    if (out.answer != Answer::agrees && out.answer != Answer::scattered && !since_later) return out;
    return sudden_departure(steps, quarter, limits).value_or(out);
}

// By how much the loss is off in the first steps; 0 where that is little of what the loss changes.
double noise_of_loss(const std::vector<const StepSummary*>& steps) {
    const double scale = scale_of(steps);
    if (steps.size() < kFewestSteps || (scale <= 0 && steps.front()->twin_loss <= 0)) return 0;
    const auto first = std::span(steps).first(kFewestSteps);
    const double apart = median_apart(first, scale);
    const double unit = scale > 0 ? scale : first.front()->twin_loss;
    return apart * unit >= kUnexplainedSpan * span_of(steps) ? apart : 0;
}

struct Cause {
    const OpSum* sum = nullptr;
    double error = 0;
};

// The op that one rounding damages most, near the loss if there is one: what comes before is averaged by the products
// after it. A squared difference turns a relative error e into a departure of e * e, a plain one into e, so e must be
// at least half of the departure.
Cause cause_of(const RunModel& m, double apart) {
    Cause worst;
    bool worst_is_near = false;
    for (const OpSum& sum : m.ops) {
        const OpRecord& op = sum.total;
        if (op.phase != Phase::forward || op.loc_compared == 0) continue;
        const double error = std::min(cost_of_rounding(op, m), 1.0);
        if (error < std::min(apart, 1.0) / 2) continue;
        const bool near = near_the_loss(op, m);
        if (std::pair(near, error) <= std::pair(worst_is_near, worst.error)) continue;
        worst = {&sum, error};
        worst_is_near = near;
    }
    return worst;
}

// The same in backward, for gradients that are off from the first compared step on, when the weights still agree: the
// first op whose results are as wrong as the gradients, if one rounding explains half of that.
Cause cause_in_backward(const RunModel& m) {
    const auto first = std::ranges::find_if(m.steps, [](const auto& s) { return s.gradient_error >= 0; });
    if (first == m.steps.end() || first->gradient_error < kLargeGradientError) return {};
    const double wanted = std::min(first->gradient_error, 1.0) / 2;
    Cause found;
    for (const OpSum& sum : m.ops) {
        const OpRecord& op = sum.total;
        if (op.phase != Phase::backward || relative(op.error_squares, op.twin_squares) < wanted) continue;
        const double error = std::min(cost_of_rounding(op, m), 1.0);
        if (error >= wanted && (!found.sum || op.first < found.sum->total.first)) found = {&sum, error};
    }
    return found;
}

// The first op near the loss that makes a large error out of small ones. While the weights of run and twin are the
// same, every error is made of roundings, also where several ops in turn make it large.
Cause cause_of_noise(const RunModel& m, double noise) {
    Cause found;
    for (const OpSum& sum : m.ops) {
        const OpRecord& op = sum.total;
        const double error = std::min(inherited_error(op), 1.0);
        if (op.amplification < kCancels || error < std::min(noise, 1.0) / 2 || !near_the_loss(op, m))
            continue;
        if (!found.sum || op.first < found.sum->total.first) found = {&sum, error};
    }
    return found;
}

// Whether decisions or values of the run steer the twin, so that it may not be the fp32 run. Numbers that leave through
// .item() do not count: every program that prints its loss has them.
bool twin_is_steered(const RunModel& m) { return m.coverage.flips > 0 || m.seeds_after_first > 0; }

bool is_cause(const Finding& f) {
    return f.severity == Severity::error && f.rule != "MPT002" && f.rule != "MPT003" && f.rule != "MPT060";
}

// The first step in which the results of the op's layer are off by what its cause needs, where the map has a column for
// each step; else the step from which the loss is apart. An op that is wrong from the start is named at its start.
Step first_step_of(const Cause& cause, const LossAgreement& a, const RunModel& m) {
    const OpRecord& op = cause.sum->total;
    const std::vector<Cell>* cells = cells_by_step(m, op);
    if (!cells) return a.begins;
    const double wanted = floor_ratio(std::min(std::fabs(a.apart), 1.0) / 2, op.dtype);
    const auto cell = std::ranges::find_if(*cells, [&](const Cell& c) { return c.cum_phi >= wanted; });
    if (!(wanted > 0) || cell == cells->end()) return a.begins;
    const Step step{cell - cells->begin()};
    return a.begins.known() ? std::min(a.begins, step) : step;
}

std::string how_far(const LossAgreement& a) {
    std::string out =
        "the loss ends at " + figure(a.loss) + " where the fp32 twin's ends at " + figure(a.twin);
    if (a.twin > 0 && a.loss > a.twin)
        out += ", " + figure(std::round(10 * a.loss / a.twin) / 10) + " times as high";
    if (const std::string which = which_loss(a); !which.empty()) out += " (" + which + ")";
    if (a.begins.known()) out += "; it departs from step " + std::to_string(a.begins.value) + " on";
    return out;
}

void explain(Finding& f, const RunModel& m, const Cause& cause,
             std::string_view costs = "one rounding of them costs") {
    const OpRecord& op = cause.sum->total;
    const std::string name = shown(base_name(op.op)), dtype(name_of(op.dtype));
    const bool cancels = is_sum_step(op.op) && op.amplification > 1;
    const bool criterion = near_the_loss(op, m);
    f.message += cancels ? "; " + name + " subtracts nearly equal values" : "; " + name;
    f.message += op.phase == Phase::backward ? " of backward" : "";
    f.message += " in " + dtype + (criterion ? " near the loss" : "") + (cancels ? ", where" : ":");
    if (op.amplification > 1)
        f.message += " an error of its inputs grows " + figure(std::round(op.amplification)) +
                     "-fold: " + std::string(costs) + " " + percent(cause.error);
    else
        f.message += " its own rounding costs " + percent(cause.error);
    if (!criterion) {
        f.advice = "compute " + name + " and its inputs in fp32";
    } else if (is_low_precision(op.dtype)) {
        f.advice =
            "compute the criterion in fp32, from the layer that makes its inputs on; or rewrite it so that "
            "nothing large cancels";
    } else {
        f.advice = "the criterion is in fp32, but its inputs were rounded: run the last layer in fp32 too";
    }
}

}  // namespace

double cost_of_rounding(const OpRecord& op, const RunModel& m) {
    DType rounded = op.dtype;
    // The inputs of an fp32 result have the format of most 16-bit ops, if they were rounded.
    std::uint64_t most = 0;
    for (const auto& [dtype, ops] : m.ops_by_dtype) {
        if (!is_low_precision(op.dtype) && is_low_precision(dtype) && ops > most) rounded = dtype, most = ops;
    }
    if (!is_low_precision(rounded)) return 0;
    return std::max(op.amplification * one_rounding_floor(rounded),
                    relative(op.loc_error_squares, op.loc_squares));
}

bool near_the_loss(const OpRecord& op, const RunModel& m) {
    return op.phase == Phase::forward && std::ranges::none_of(m.ops, [&](const OpSum& s) {
               return s.total.phase == Phase::forward && s.total.first > op.first &&
                      is_matrix_product(s.total.op);
           });
}

std::string which_loss(const LossAgreement& a) {
    std::string out;
    if (a.optimizers > 1)
        out = "optimizer " + std::to_string(a.optimizer + 1) + " of " + std::to_string(a.optimizers);
    if (a.trainings > 1)
        out += (out.empty() ? "" : ", ") + ("training " + std::to_string(a.training + 1)) + " of " +
               std::to_string(a.trainings);
    return out;
}

LossAgreement agreement_of(const RunModel& m, const Limits& limits) {
    LossAgreement out;
    if (m.unfinished && m.unfinished->has_loss && m.unfinished->has_twin &&
        lost_as(*m.unfinished) != Answer::agrees) {
        out.answer = lost_as(*m.unfinished);
        return out;
    }
    const std::vector<LossSeries> all = series_of(m);
    for (const LossSeries& series : all) {
        LossAgreement a = agreement_in(series.steps, limits);
        a.optimizer = series.optimizer;
        a.training = series.training;
        a.last_loss = series.steps.back()->loss;
        a.last_twin = series.steps.back()->twin_loss;
        a.last_backwards = series.steps.back()->backwards;
        if (&series == &all.front() || is_farther(a, out)) out = a;
    }
    for (const LossSeries& series : all) out.optimizers = std::max(out.optimizers, series.optimizer + 1);
    out.trainings = static_cast<int>(m.trainings.size()) + 1;
    return out;
}

namespace {

std::vector<const StepSummary*> steps_of(const RunModel& m, const LossAgreement& a) {
    for (LossSeries& series : series_of(m)) {
        if (series.optimizer == a.optimizer && series.training == a.training)
            return not_skipped(std::move(series.steps));
    }
    return {};
}

// A criterion whose value is made of its roundings.
void judge_noise(Case& c, const std::vector<const StepSummary*>& steps) {
    const double noise = noise_of_loss(steps);
    if (noise < c.limits.loss_fail) return;
    const Cause cause = cause_of_noise(c.model, noise);
    if (!cause.sum) return;
    const bool low = is_low_precision(cause.sum->total.dtype);
    Finding f = finding_at("MPT024", low ? Severity::error : Severity::warning, cause.sum->total);
    f.step = steps.front()->step;
    f.value = noise;
    f.limit = c.limits.loss_fail;
    f.unit = "share";
    f.importance = importance::kLossDeparture(std::min(noise, 1.0));
    f.message = "the loss is off by " + percent(noise) +
                " of the fp32 loss in a typical one of the first steps, in either direction";
    explain(f, c.model, cause, "its results are off by");
    c.out.findings.push_back(std::move(f));
}

}  // namespace

void judge_departure(Case& c) {
    const LossAgreement& a = c.out.loss;
    const double warn = warn_limit(a, c.limits), fail = fail_limit(a, c.limits);
    const auto steps = steps_of(c.model, a);
    // What another rule found as an error explains it already.
    if (steps.size() < kFewestSteps || std::ranges::any_of(c.out.findings, is_cause)) return;
    if (a.answer == Answer::agrees || a.answer == Answer::scattered) return judge_noise(c, steps);
    const bool above = a.answer == Answer::above;
    if (!above && a.answer != Answer::below) return;
    Cause cause = cause_of(c.model, std::fabs(a.apart));
    // A run may be luckier than its twin. It is not where the criterion itself makes the difference.
    if (!above && !(cause.sum && near_the_loss(cause.sum->total, c.model))) return judge_noise(c, steps);
    // Choices of the run in the twin, as mined negatives, make other gradients without any rounding.
    if (!cause.sum && c.model.coverage.flips == 0) cause = cause_in_backward(c.model);
    if (!cause.sum) {
        const bool large = a.apart >= kUnexplained && a.loss - a.twin >= kUnexplainedSpan * span_of(steps);
        if (!large || twin_is_steered(c.model)) return;
    }
    const bool low = cause.sum && is_low_precision(cause.sum->total.dtype);
    const double apart = std::fabs(a.apart);
    const bool fails = low && apart >= fail;
    if (cause.sum && !low && apart < fail) return;
    const Severity severity = fails ? Severity::error : Severity::warning;
    Finding f = cause.sum ? finding_at("MPT024", severity, cause.sum->total) : finding("MPT024", severity);
    f.step = cause.sum ? first_step_of(cause, a, c.model) : a.begins;
    f.value = apart;
    f.limit = fails || !low ? fail : warn;
    f.unit = "share";
    f.importance = importance::kLossDeparture(std::min(apart, 1.0));
    f.message = how_far(a);
    if (cause.sum) {
        explain(f, c.model, cause);
    } else {
        f.layer = "(loss)";
        f.message += "; no single op explains it";
        f.advice = "run blocks in fp32, one after another, from the loss on, until the two agree";
        if (a.begins > steps.front()->step)
            f.advice = "look at what the program does shortly before step " + std::to_string(a.begins.value) +
                       ", as loading a checkpoint; else " + f.advice;
    }
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
