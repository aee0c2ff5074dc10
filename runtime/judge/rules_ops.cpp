// MPT010, MPT011, MPT012, MPT023: the error that an op itself introduces. Only results in 16 bits and less are judged,
// because in fp32 the order of a sum differs between kernels, and TF32 is a choice.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/gradient_shares.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rule_pack.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;  // compared elements below which an op is not judged
constexpr std::uint64_t kFewestForBias = 4096;
constexpr double kBiasSigmas = 6;                 // metrics.md 5.2: z > 6
constexpr double kOneRoundingAtMost = 1 / 0.425;  // one rounding errs by u at most, 2.35 floors
constexpr double kConcentrated = 1.0 / 256;       // mean square over largest square; Gaussian: above 1/36
constexpr double kShareOfDeparture = 0.1;  // of the gradients' error, where the loss departs from its twin's
constexpr double kLongChain = 16;          // additions a step from which on a sum is a running sum
constexpr double kChainWithoutProof = 64;  // the same, when neither bias nor divergence was measured
constexpr std::uint64_t kFewestAddends = 256;
constexpr double kOneSided = 0.15;  // gain bias in unit roundoffs; random signs give about 0
constexpr double kFarAbove = 4;     // CUM of the sum over CUM of what came before it
constexpr double kSlack = 2;        // partial sums may be larger than the sum

double unit_of(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? unit_roundoff(*format) : 0;
}

double gain_of(const OpRecord& op) { return op.loc_squares > 0 ? op.loc_dot / op.loc_squares : 0; }

// The op's share of the error that all ops introduced, in squares of relative error. Fixing this op removes that share.
double share_of_error(const Case& c, const OpRecord& op) {
    double all = 0;
    for (const OpSum& s : c.model.ops) {
        if (s.total.loc_compared > 0 && is_low_precision(s.total.dtype) && s.total.loc_squares > 0)
            all += s.total.loc_error_squares / s.total.loc_squares;
    }
    const double own = op.loc_squares > 0 ? op.loc_error_squares / op.loc_squares : 0;
    return all > 0 && std::isfinite(own / all) ? own / all : 0;
}

bool is_judged(const OpRecord& op) {
    if (op.half_sums > 0 || op.split_sums > 0) return false;  // MPT071, MPT072
    return is_low_precision(op.dtype) && op.loc_compared >= kFewest && op.loc_squares > 0 &&
           !near_subnormal(op) && !is_whole_layer(op.op) && (!is_fill(op.op) || may_add_by_index(op.op));
}

// Stochastic rounding costs about two floors instead of one, and its errors cancel.
bool may_be_stochastic(const OpRecord& op, const Limits& limits) {
    return (is_elementwise(op.op) || op.phase == Phase::optimizer) &&
           std::fabs(gain_of(op)) < limits.gain_bias_u * unit_of(op.dtype);
}

// Without a twin some elements of a product are computed again, not all.
bool is_part(const Case& c, const OpRecord& op) {
    return c.model.mode == Mode::watch && op.loc_compared < op.elements;
}

double floor_for(const OpRecord& op, const Limits& limits) {
    double floor = expected_phi(op.op);
    if (may_be_stochastic(op, limits)) floor = std::max(floor, 2.0);
    return floor;
}

// Whether all results have one magnitude, or few values carry nearly all of the energy (the repeated values of a rare
// token). Such results have few different rounding errors, which neither average to one floor nor cancel.
bool few_values(const OpRecord& op) {
    const double spread = op.amax > 0 ? op.loc_squares / (op.amax * op.amax) : 0;
    return one_magnitude(op) || spread < kConcentrated * static_cast<double>(op.loc_compared);
}

// Autograd chooses the formulas of backward, and kernels of torch compute them: their error is not the program's. The
// backward of indexing has no formula of its own, it adds by index. A norm is one kernel in forward too, which chooses
// where it rounds.
bool is_kernel_of_torch(const OpRecord& op) {
    return op.op.starts_with("aten::") && (is_backward_op(op.op) || is_norm(op.op) ||
                                           (op.phase == Phase::backward && may_add_by_index(op.op)));
}

// Whether one rounding of the result is all that the program asks of the kernel. Those of the CPU round a number (a
// tensor without dimensions) of another dtype before that. What updates parameters may round as it likes.
bool rounds_result_only(const OpRecord& op) {
    return op.op.starts_with("aten::") && is_elementwise(op.op) && op.phase != Phase::optimizer;
}

bool is_cost_of_kernel(const OpRecord& op) { return is_kernel_of_torch(op) || rounds_result_only(op); }

// A note, unless the error is large beside the kernel's results and explains a material part of the update's error:
// most of it, or a good part if the loss is no longer the fp32 loss.
Severity severity_of_kernel(const Case& c, const OpRecord& op, double share) {
    const bool departs = c.out.loss.answer == LossAgreement::Answer::above;
    const double material = departs ? kShareOfDeparture : c.limits.update_share;
    const bool large = relative(op.loc_error_squares, op.loc_squares) >= c.limits.amplified_fail;
    return large && share >= std::min(material, c.limits.update_share) ? Severity::error : Severity::note;
}

struct Introduced {
    const OpSum* sum = nullptr;
    double floors = 0, floor = 0, limit = 0;
    Severity severity = Severity::warning;
    double gradient_share = 0;  // of a kernel: how much of the gradients' error it explains
};

std::optional<Introduced> introduced_by(const Case& c, const GradientShares& shares, const OpSum& sum) {
    const OpRecord& op = sum.total;
    const double floors = introduced_phi(op);
    const double floor = floor_for(op, c.limits);
    const double warn = widened(c.limits.loc_warn_phi, op.loc_compared) * floor;
    const double fail = widened(c.limits.loc_fail_phi, op.loc_compared) * floor;
    if (!(floors > warn)) return std::nullopt;
    // The same rounding error repeats, and one rounding can cost up to 2.35 floors.
    if (few_values(op) && floors <= kOneRoundingAtMost * 1.01 * floor) return std::nullopt;
    if (is_cost_of_kernel(op)) {
        const double share = shares.of(op, relative(op.loc_error_squares, op.loc_squares)).sampled;
        return Introduced{&sum, floors, floor, warn, severity_of_kernel(c, op, share), share};
    }
    const bool fails = floors > fail;
    return Introduced{&sum, floors, floor, fails ? fail : warn, fails ? Severity::error : Severity::warning};
}

std::string advice_for(const OpRecord& op) {
    if (op.op.starts_with("cublas"))
        return "set CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, or give cublasLtMatmul an algorithm "
               "whose reduction scheme is COMPUTE_TYPE";
    if (is_matrix_product(op.op)) return "accumulate in fp32: allow no reduced-precision reduction here";
    const std::string name = base_name(op.op);
    // Their backward sums the gradients of weight and bias over all rows in the results' dtype.
    if (is_norm(op.op) && is_backward_op(op.op))
        return "keep the module that runs " + shown(name) + " in fp32";
    return "run " + shown(name) + " of " + (op.layer.empty() ? std::string("this layer") : shown(op.layer)) +
           " in fp32, or sum in fp32 inside it";
}

// Found in the map of layers and steps if the map has a column for each step; else the worst step.
Step first_step_above(const RunModel& model, const OpSum& sum, double limit) {
    const Step worst = sum.worst_loc.step.known() ? sum.worst_loc.step : sum.first_step;
    const std::vector<Cell>* cells = cells_by_step(model, sum.total);
    if (!cells) return worst;
    const auto cell =
        std::ranges::find_if(*cells, [&](const Cell& each) { return is_worse(each.loc_phi, limit); });
    return cell == cells->end() ? worst : Step{cell - cells->begin()};
}

std::string torch_of(const RunModel& m) {
    const bool known = !m.ranks.empty() && !m.ranks[0].process.framework.empty();
    return known ? shown(m.ranks[0].process.framework) : "torch";
}

// What a kernel costs without harm to the update: about torch, not about the program.
void make_kernel_note(const Case& c, Finding& f, const Introduced& worst) {
    const OpRecord& op = worst.sum->total;
    const std::string name = shown(base_name(op.op));
    f.rule = "MPT023";
    f.name = rule_called(f.rule)->name;
    f.message = "the kernel of " + torch_of(c.model) + " on this device for " + name + " " +
                std::string(name_of(op.phase)) + " in " + std::string(name_of(op.dtype)) + " introduces " +
                phi(worst.floors) + ", " + percent(relative(op.loc_error_squares, op.loc_squares)) +
                " of its results; its roundings cost " + phi(worst.floor) + others_text(f.more_layers);
    f.advice = "the program does not cause it, and it explains no material part of the update's error; " +
               name + " with fp32 inputs does not have it";
    if (rounds_result_only(op))
        f.advice +=
            ", nor has a tensor times a Python number: this kernel rounds a tensor without dimensions first";
}

// One op in several layers gives one finding. It names the worst layer and lists the others.
Finding introduced_finding(const Case& c, const std::vector<Introduced>& group) {
    const Introduced& worst = *std::ranges::max_element(
        group, {}, [](const Introduced& i) { return std::tuple(i.severity, i.floors); });
    const OpRecord& op = worst.sum->total;
    Finding f = finding_at("MPT010", worst.severity, op);
    f.step = first_step_above(c.model, *worst.sum, worst.limit);
    f.rank = worst.sum->worst_loc.rank;
    f.value = worst.floors;
    f.limit = worst.limit;
    f.unit = "phi";
    if (is_part(c, op)) f.basis = Basis::sampled;
    double share = 0;
    for (const Introduced& i : group) {
        share += share_of_error(c, i.sum->total);
        if (&i != &worst) f.more_layers.push_back(i.sum->total.layer);
    }
    f.importance = importance::kIntroducedError(share);
    f.message = place_text(op) + " introduces " + phi(f.value) + ", its roundings cost " + phi(worst.floor) +
                " (limit " + phi(f.limit) + "), over " +
                counted(op.loc_compared, is_part(c, op) ? "sampled element" : "element") +
                others_text(f.more_layers);
    if (share > 0.005) f.message += "; " + percent(share) + " of the error that ops introduced";
    f.advice = advice_for(op);
    if (f.severity == Severity::note)
        make_kernel_note(c, f, worst);
    else if (is_cost_of_kernel(op))
        f.message += "; it explains " + percent(worst.gradient_share) + " of the gradients' error";
    return f;
}

// Whether one constant is in many results: a factor, or a value that is written to many places.
bool has_constant(std::string_view op) {
    static constexpr std::array kNames = {"mul",     "div",         "foreach_mul", "foreach_div",
                                          "scatter", "masked_fill", "index_fill",  "fill"};
    return std::ranges::find(kNames, base_name(op)) != kNames.end();
}

// Only sampled steps have a record of every call.
double calls_a_step(const RunModel& model, const OpSum& sum) {
    const OpRecord& op = sum.total;
    const auto sampled = std::ranges::count_if(model.steps, &StepSummary::sampled);
    const bool only_sampled = op.loc_compared > 0 && op.elements > 0 && sampled > 0;
    const auto steps =
        static_cast<double>(only_sampled ? sampled : std::max<std::int64_t>(model.step_count, 1));
    const double counted =
        only_sampled ? static_cast<double>(op.loc_compared) / static_cast<double>(op.elements) : 1;
    return static_cast<double>(op.calls) * std::min(counted, 1.0) /
           (steps * static_cast<double>(std::max<std::uint64_t>(sum.ranks, 1)));
}

void judge_bias(Case& c, const OpSum& sum) {
    const OpRecord& op = sum.total;
    if (op.loc_compared < kFewestForBias) return;
    if (op.phase == Phase::optimizer && leaves_what_it_updates(op)) return;  // MPT040
    const double u = unit_of(op.dtype);
    const double gain = gain_of(op);
    const double error = relative(op.loc_error_squares, op.loc_squares);
    if (u <= 0 || error <= 0) return;
    const double sigmas = std::fabs(gain) * std::sqrt(static_cast<double>(op.loc_compared)) / error;
    if (std::fabs(gain) <= c.limits.gain_bias_u * u || sigmas <= kBiasSigmas) return;
    // A single rounding errs by a unit roundoff at most. Few values may have the same one, and so has a
    // constant.
    if ((few_values(op) || has_constant(op.op)) && std::fabs(gain) <= 1.01 * u) return;
    // Rounded to nearest: what truncates every result costs two floors. The bias is that of few different values, whose
    // errors repeat, such as pixels of 8 bits, the weights of a softmax over alike scores, or a loss of which every row
    // starts alike. A running sum that loses its addends rounds to nearest too.
    const bool running_sum = is_sum_step(op.op) && calls_a_step(c.model, sum) >= kLongChain;
    if (!running_sum && error <= kOneRounding * one_rounding_floor(op.dtype)) return;
    Finding f = finding_at("MPT011", Severity::error, op);
    f.step = sum.first_step;
    f.value = std::fabs(gain) / u;
    f.limit = c.limits.gain_bias_u;
    f.unit = "u";
    if (is_part(c, op)) f.basis = Basis::sampled;
    f.importance = importance::kRoundingBias(share_of_error(c, op));
    f.message = place_text(op) + " makes its results " + (gain < 0 ? "smaller" : "larger") + " by " +
                percent(std::fabs(gain)) + " on average, " + figure(f.value) + " unit roundoffs (limit " +
                figure(f.limit) + ", " + figure(std::round(sigmas)) + " standard errors)";
    f.advice = "round to nearest: results are truncated, or a sum inside loses its small addends";
    c.out.findings.push_back(std::move(f));
}

// --- running sums ---

// Total error of the low-precision op just before, in the same layer where there is one; 1 at least.
double phi_before(const RunModel& model, const OpRecord& op) {
    const OpRecord* best = nullptr;
    auto key = [&](const OpRecord& o) { return std::tuple(o.layer == op.layer, o.first); };
    for (const OpSum& s : model.ops) {
        const OpRecord& o = s.total;
        if (o.phase != op.phase || o.first >= op.first || o.compared == 0 || !is_low_precision(o.dtype))
            continue;
        if (o.layer == op.layer && o.op == op.op) continue;
        if (!best || key(o) > key(*best)) best = &o;
    }
    return best ? std::max(total_phi(*best), 1.0) : 1.0;
}

bool far_above_its_inputs(const RunModel& model, const OpRecord& op) {
    const double total = total_phi(op);
    return total >= kFarAbovePhi && total >= kFarAbove * phi_before(model, op);
}

// Whether the absorbed addends change the result. Absorbed addends with random signs cancel.
bool is_harmful(const Case& c, const OpSum& sum, double chain) {
    const OpRecord& op = sum.total;
    const bool has_loc = op.loc_compared > 0, has_total = op.compared > 0;
    if (has_loc && std::fabs(gain_of(op)) >= kOneSided * unit_of(op.dtype)) return true;
    if (has_total && far_above_its_inputs(c.model, op)) return true;
    return !has_loc && !has_total && chain >= kChainWithoutProof;
}

// Whether the sum stagnates while its twin grows. Used when the addends were not counted.
bool stalls(const Case& c, const OpRecord& op) {
    const bool healthy_steps = op.loc_compared == 0 || introduced_phi(op) <= kOneRoundingAtMost;
    return op.added == 0 && healthy_steps && total_phi(op) >= 2 * kFarAbovePhi &&
           op.amax < 0.9 * op.twin_amax && total_phi(op) >= 4 * kFarAbove * phi_before(c.model, op);
}

// Whether a sum of single values, such as the losses of micro-batches, went away from its twin. Its addends are not
// absorbed, but each is rounded to the few places that the sum has left, and not at random: they are alike.
bool drifts(const Case& c, const OpRecord& op) {
    return op.elements == op.calls && op.compared > 0 && far_above_its_inputs(c.model, op);
}

// Whether the roundings of a long sum's additions add up, though no addend is absorbed. Each of its values has had a
// rounding for every addend before it: over n addends of random signs the root of n/3 floors. What is far more than the
// roundings that were measured came in with the addends, as when the twin has other weights.
bool adds_up_roundings(const Case& c, const OpRecord& op, double chain) {
    if (chain < kChainWithoutProof || op.compared < kFewest || op.elements == op.calls) return false;
    const double total = total_phi(op), before = phi_before(c.model, op);
    if (op.loc_compared > 0 && total > kSlack * introduced_phi(op) * std::sqrt(chain)) return false;
    const double added = std::sqrt(std::max(0.0, total * total - before * before));
    return added >= std::max(kAddedUp, std::sqrt(chain / 3) / 2);
}

// What became of the sum.
std::string effect_text(const OpRecord& op, bool swallows, bool stalls, double share, double limit) {
    const std::string off = "off by " + percent(relative(op.error_squares, op.twin_squares));
    if (swallows)
        return "leaves " + percent(share) + " of them without effect (limit " + percent(limit) + ")" +
               (op.compared > 0 ? "; the sum is " + off : "");
    const std::string ends = figure(op.amax) + " where the fp32 twin reaches " + figure(op.twin_amax);
    return stalls ? "stands at " + ends : "ends at " + ends + ": it is " + off;
}

void judge_sum(Case& c, const OpSum& sum, std::set<OpPlace>& swallowing) {
    const OpRecord& op = sum.total;
    if (op.phase == Phase::optimizer || !is_low_precision(op.dtype) || !is_sum_step(op.op)) return;
    const double chain = calls_a_step(c.model, sum);
    if (chain < kLongChain) return;
    const double share = op.added > 0 ? static_cast<double>(op.absorbed) / static_cast<double>(op.added) : 0;
    const bool swallows =
        op.added >= kFewestAddends && share > c.limits.absorbed && is_harmful(c, sum, chain);
    const bool stands = stalls(c, op), fails = swallows || stands || drifts(c, op);
    if (!fails && !adds_up_roundings(c, op, chain)) return;
    const std::string dtype(name_of(op.dtype));
    Finding f = finding_at("MPT012", fails ? Severity::error : Severity::warning, op);
    f.step = sum.first_step;
    f.value = fails ? share : total_phi(op);
    f.limit = fails ? c.limits.absorbed : kAddedUp;
    f.unit = fails ? "share" : "phi";
    f.importance = importance::kSwallowedAddends(share);
    f.message = "a running sum in " + dtype + " of about " + figure(std::round(chain)) + " addends a step " +
                (fails ? effect_text(op, swallows, stands, share, f.limit)
                       : "rounds at each of them: it is off by " + phi(f.value) + ", one rounding is 1 φ");
    f.advice =
        "keep the running sum in fp32 and convert the result once; a " + dtype +
        (fails ? " sum cannot take addends below half its last place" : " sum rounds once for each addend");
    swallowing.insert(place_of(op));
    c.out.findings.push_back(std::move(f));
}

}  // namespace

OpPlace place_of(const OpRecord& op) { return {op.layer, op.op, op.phase}; }

std::set<OpPlace> judge_sums(Case& c) {
    std::set<OpPlace> swallowing;
    for (const OpSum& sum : c.model.ops) judge_sum(c, sum, swallowing);
    return swallowing;
}

void judge_ops(Case& c, const std::set<OpPlace>& swallowing) {
    const GradientShares shares(c.model);
    // Notes about kernels are apart from findings.
    std::map<std::tuple<std::string, Phase, DType, bool>, std::vector<Introduced>> groups;
    for (const OpSum& sum : c.model.ops) {
        const OpRecord& op = sum.total;
        if (!is_judged(op) || swallowing.contains(place_of(op))) continue;
        if (const auto introduced = introduced_by(c, shares, sum))
            groups[{op.op, op.phase, op.dtype, introduced->severity == Severity::note}].push_back(
                *introduced);
        else if (!is_kernel_of_torch(op))
            judge_bias(c, sum);
    }
    for (const auto& [key, group] : groups) c.out.findings.push_back(introduced_finding(c, group));
}

}  // namespace mp::trace
