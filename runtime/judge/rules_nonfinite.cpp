// MPT001. The first op that made a non-finite value from finite inputs while its twin stayed finite, in each
// layer. It is silent for ops that only pass such a value on, for masks (the twin has them too), and for
// gradients that overflow because of the loss scale, which is how GradScaler finds its scale. Precision is not the
// cause of a NaN that the twin has too. The op that first made such a NaN is named if both losses become NaN with it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kMostPlaces = 20;  // a run whose loss is NaN overflows everywhere

bool lost_in_both(const StepSummary& s) {
    return s.has_loss && s.has_twin && !std::isfinite(s.loss) && !std::isfinite(s.twin_loss);
}

// What a program did after its last step may be an evaluation or an export. It may also be a step that the program left
// because its loss was not finite.
bool is_unfinished(Step step, const RunModel& m) {
    return m.unfinished && step == m.unfinished->step &&
           std::ranges::find(m.steps, step, &StepSummary::step) == m.steps.end();
}

bool lost_its_loss(const std::optional<StepSummary>& s) {
    return s && s->has_loss && !std::isfinite(s->loss);
}

bool ended_by_an_error(const RunModel& m) {
    return std::ranges::any_of(
        m.ranks, [](const RankFacts& r) { return !r.ended_by.empty() && r.ended_by != "KeyboardInterrupt"; });
}

// Whether the step that did not end was left because of values that are not finite.
bool is_left(const RunModel& m) {
    const StepSummary& s = *m.unfinished;
    if (lost_its_loss(s)) return !s.has_twin || !std::isfinite(s.twin_loss);
    return s.lost_gradients > 0 || (!s.has_loss && ended_by_an_error(m));
}

enum class Shared : std::uint8_t { no, harmless, lost };

std::uint64_t nonfinite_of(const OpRecord& op) { return op.nan + op.pos_inf + op.neg_inf; }

// Whether a NaN of backward reached no weight: later losses and all kept tensors are finite. Formulas of autograd make
// such values and mask them, as that of the norm of a vector of zeros does. A twin shows that it has them too.
bool was_masked(const OpSum& sum, const RunModel& m) {
    const OpRecord& op = sum.at_origin;
    const bool only_nan = op.nan > 0 && op.pos_inf + op.neg_inf == 0;
    if (has_twin(m) || sum.total.phase != Phase::backward || !only_nan) return false;
    const auto is_later = [&](const StepSummary& s) { return s.step > sum.first_origin.step; };
    const auto later = std::ranges::find_if(m.steps, is_later);
    const auto is_finite = [](const StepSummary& s) { return s.has_loss && std::isfinite(s.loss); };
    return later != m.steps.end() && std::all_of(later, m.steps.end(), is_finite) &&
           std::ranges::none_of(m.tensors, [](const TensorSum& t) {
               return t.last.nonfinite_real > 0 || t.first_nonfinite.step.known();
           });
}

// Whether the twin has the non-finite values too, and whether the losses of both are lost in that step or the next one.
// Unused padding may be NaN and the logarithm of a mask is -inf, so a shared value alone is harmless. If the step was
// not kept, the value is judged as not shared.
Shared share_of(const OpSum& sum, const RunModel& m) {
    if (is_unfinished(sum.first_origin.step, m) && sum.at_origin.nonfinite_real == 0 &&
        (has_twin(m) || !is_low_precision(sum.total.dtype)))
        return is_left(m) ? Shared::lost : Shared::harmless;
    if (was_masked(sum, m)) return Shared::harmless;
    if (!has_twin(m) || nonfinite_of(sum.at_origin) == 0 || sum.at_origin.nonfinite_real > 0)
        return Shared::no;
    const auto at = std::ranges::find(m.steps, sum.first_origin.step, &StepSummary::step);
    if (at == m.steps.end() || !at->has_twin) return Shared::no;
    if (lost_in_both(*at)) return Shared::lost;
    const auto next = at + 1;
    if (next != m.steps.end() && lost_in_both(*next)) return Shared::lost;
    if (next == m.steps.end() && m.unfinished && lost_in_both(*m.unfinished)) return Shared::lost;
    // Where no element is finite in both, nothing was compared; a twin of 16 bits may also be missing.
    return sum.at_origin.compared > 0 || !is_low_precision(sum.total.dtype) ? Shared::harmless : Shared::no;
}

std::string what_of(const OpRecord& op) {
    return op.nan > 0 ? counted(op.nan, "NaN") : counted(op.pos_inf + op.neg_inf, "infinite value");
}

// What makes an op give such a value in every format, and the usual cure.
std::string guard_for(const OpSum& sum) {
    const std::string name = base_name(sum.total.op);
    if (name.starts_with("log"))
        return "it is the logarithm of 0 or of a negative: clamp its input from below";
    if (name.find("exp") != std::string::npos || name == "cosh" || name == "sinh")
        return "it overflows fp32 too: subtract the largest value before it, or use logsumexp or softmax";
    if (sum.total.phase == Phase::backward)
        return "the derivative is infinite there, as that of a root at 0 is: add an epsilon under the root, "
               "or "
               "keep the values away from 0";
    if (name == "mean" || name.starts_with("var") || name.starts_with("std"))
        return "it has too few values: guard against empty or single-element inputs";
    if (name == "div" || name == "reciprocal") return "it divides by 0: clamp the divisor from below";
    return "guard it against 0 / 0, the root of a negative, and infinities";
}

// Initialisations draw infinities and clamp them (trunc_normal_). Such a value matters only if it is still there when
// the model runs: then another op, or the loss, shows it. In fp32 it may also be a metric beside the model.
bool before_the_model(const OpSum& sum, const RunModel& m) {
    const OpRecord& op = sum.total;
    const bool outside = op.phase == Phase::data || op.layer == "(update)" || op.layer == "(data)";
    if (!outside || m.steps.empty() || sum.first_origin.step != m.steps.front().step) return false;
    const std::uint64_t at = sum.at_origin.first_origin;
    if (is_low_precision(op.dtype) && !before_the_first_forward(sum.first_origin.step, at, m)) return false;
    return sum.at_origin.nonfinite_real == 0 && m.steps.front().has_loss &&
           std::isfinite(m.steps.front().loss);
}

constexpr const char* kNotKnown =
    "; it follows code that is not observed, so what fp32 gives there is not known";

std::string what_is_lost(const OpSum& sum, const RunModel& m) {
    if (!is_unfinished(sum.first_origin.step, m)) return ", and the loss is lost";
    const std::string what = lost_its_loss(m.unfinished)        ? ", and the loss is lost"
                             : m.unfinished->lost_gradients > 0 ? ", and gradients are lost"
                                                                : "";
    return what + " in the step that did not end";
}

Finding shared_nan(const OpSum& sum, const RunModel& m) {
    Finding f = finding_at("MPT001", Severity::error, sum.total);
    const OpRecord& op = sum.at_origin;
    f.rank = sum.first_origin.rank;
    f.device = device_of(sum.at_origin);
    f.step = sum.first_origin.step;
    if (!sum.at_origin.source.empty()) f.source = sum.at_origin.source;
    f.message = (sum.total.layer.empty() ? "" : shown(sum.total.layer) + " ") +
                shown(base_name(sum.total.op)) + " gave " + what_of(op) + " of " +
                figure(static_cast<double>(op.elements)) + " in " + std::string(name_of(sum.total.dtype)) +
                (op.nan > 0 ? " out of inputs without one" : " out of finite inputs") + what_is_lost(sum, m) +
                (twin_starts_anew(m) ? kNotKnown
                 : has_twin(m)       ? "; also in fp32: the twin has it too, so precision is not the cause"
                                     : ", so precision is not the cause");
    f.advice = twin_starts_anew(m)
                   ? "run with --eager: the operations before it and their fp32 twins are seen then"
                   : guard_for(sum) + "; look at the data of step " + std::to_string(f.step.value);
    f.value = static_cast<double>(nonfinite_of(op));
    f.importance = importance::kSharedNan();
    return f;
}

std::string what_happened(const OpSum& sum) {
    const OpRecord& op = sum.at_origin;
    const bool only_nan = op.nan > 0 && op.pos_inf + op.neg_inf == 0;
    const std::uint64_t bad = op.nonfinite_real > 0 ? op.nonfinite_real : nonfinite_of(op);
    std::string out =
        (sum.total.layer.empty() ? "" : shown(sum.total.layer) + " ") + shown(base_name(sum.total.op)) +
        " gave " + counted(bad, only_nan ? "NaN" : "non-finite value") + " of " +
        figure(static_cast<double>(op.elements)) + " in " + std::string(name_of(sum.total.dtype));
    if (op.input_amax > 0) out += " from finite inputs of at most " + figure(op.input_amax);
    const FloatFormat* format = format_of(sum.total.dtype);
    if (op.twin_amax > 0) out += "; the fp32 twin reaches " + figure(op.twin_amax);
    if (op.twin_amax > 0 && format) out += " and the format ends at " + figure(max_finite(*format));
    return out;
}

std::string what_to_do(const OpSum& sum) {
    const OpRecord& op = sum.at_origin;
    const FloatFormat* format = format_of(sum.total.dtype);
    const std::string layer = sum.total.layer.empty() ? "this op" : shown(sum.total.layer);
    const std::string formats =
        sum.total.dtype == DType::fp16 || is_fp8(sum.total.dtype) ? "fp32 or bf16" : "fp32";
    if (sum.total.phase == Phase::backward)
        return "use a loss scale with GradScaler, or run the backward of " + layer + " in " + formats;
    std::string out = "run " + layer + " in " + formats;
    if (sum.total.phase == Phase::optimizer) return out + ", or keep the optimizer's values in fp32";
    out += "; lowering the loss scale does not help";
    if (format && op.twin_amax > max_finite(*format))
        out += ": the forward value itself is " + figure(op.twin_amax);
    return out;
}

Finding overflow_of(const OpSum& sum, std::size_t order) {
    Finding f = finding_at("MPT001", Severity::error, sum.total);
    f.rank = sum.first_origin.rank;
    f.device = device_of(sum.at_origin);
    f.step = sum.first_origin.step;
    if (!sum.at_origin.source.empty()) f.source = sum.at_origin.source;
    f.message = what_happened(sum);
    f.advice = what_to_do(sum);
    f.value = sum.at_origin.twin_amax;
    const FloatFormat* format = format_of(sum.total.dtype);
    f.limit = format ? max_finite(*format) : 0;
    f.importance = importance::kOverflow(static_cast<double>(order));
    return f;
}

// Reports weights that are not finite when neither an op nor a sum over ranks is known as the origin.
bool judge_lost_weights(Case& c) {
    const auto reduced = [&](const CollectiveTotal& t) { return overflows(t, c); };
    if (std::ranges::any_of(c.model.collectives, reduced)) return true;
    const TensorSum* first = nullptr;
    std::uint64_t others = 0;
    for (const TensorSum& t : c.model.tensors) {
        const bool kept = t.kind == TensorKind::parameter || t.kind == TensorKind::optimizer_state;
        if (!kept || t.last.nonfinite_real <= t.last.nonfinite_twin) continue;
        if (first) {
            ++others;
        } else {
            first = &t;
        }
    }
    if (!first) return false;
    Finding f = finding("MPT001", Severity::error);
    f.layer = first->name.substr(0, first->name.rfind('.') == std::string::npos ? 0 : first->name.rfind('.'));
    f.phase = Phase::optimizer;
    f.step = first->first_nonfinite.step.known() ? first->first_nonfinite.step : first->last_step;
    f.rank = first->first_nonfinite.rank;
    f.message = std::string(name_of(first->kind)) + " " + shown(first->name) + " holds " +
                counted(first->last.nonfinite_real, "non-finite value") + " of " +
                figure(static_cast<double>(first->last.elements)) +
                (has_twin(c.model) ? " that the twin does not have" : "");
    if (others > 0) f.message += ", as do " + counted(others, "other tensor");
    f.advice =
        c.model.mode == Mode::trajectory
            ? "no operation was seen to begin it: look for code that is not observed (compiled regions, "
              "custom kernels, numpy)"
            : "no operation was seen to begin it: record every step with --mode trajectory";
    f.value = static_cast<double>(first->last.nonfinite_real);
    f.importance = importance::kLostWeights();
    c.out.findings.push_back(std::move(f));
    return true;
}

// Reports losses that end as NaN in run and twin. The run is lost, but not because of precision.
void judge_lost_loss(Case& c) {
    std::vector<StepSummary> steps = c.model.steps;
    const bool left = lost_its_loss(c.model.unfinished);
    if (left) steps.push_back(*c.model.unfinished);
    const std::size_t last = left ? 1 : 3;
    if (steps.size() < last) return;
    for (std::size_t i = steps.size() - last; i < steps.size(); ++i) {
        if (!steps[i].has_loss || std::isfinite(steps[i].loss)) return;
        if (steps[i].has_twin && std::isfinite(steps[i].twin_loss)) return;
    }
    const bool twin = steps.back().has_twin && !twin_starts_anew(c.model);
    std::size_t first = steps.size();
    while (first > 0 && steps[first - 1].has_loss && !std::isfinite(steps[first - 1].loss)) --first;
    Finding f = finding("MPT001", Severity::error);
    f.layer = "(loss)";
    f.step = steps[first].step;
    f.message = "the loss is not finite from step " + std::to_string(f.step.value) +
                (left ? ", in which the program ended" : " to the end") +
                (twin ? ", in the fp32 twin too: precision is not the cause" : "");
    f.advice = twin ? "look at the data and at the learning rate"
                    : std::string("find the first operation with --mode trajectory") +
                          (twin_starts_anew(c.model) ? " --eager" : "");
    f.value = static_cast<double>(steps.size() - first);
    f.unit = "steps";
    f.importance = importance::kLostLoss();
    c.out.findings.push_back(std::move(f));
}

}  // namespace

bool before_the_first_forward(Step step, std::uint64_t ordinal, const RunModel& m) {
    return std::ranges::none_of(m.ops, [&](const OpSum& s) {
        return s.total.phase == Phase::forward && s.first_step == step && s.total.first < ordinal;
    });
}

bool is_harmless(const OpSum& sum, const RunModel& model) {
    return share_of(sum, model) != Shared::no || before_the_model(sum, model);
}

bool left_to_the_skips(const OpSum& sum, const std::vector<SkipVerdict>& skips, const RunModel& m) {
    const std::string& layer = sum.total.layer;
    const bool scaled = sum.total.phase == Phase::backward || layer == "(scaler)" || layer == "(clipping)" ||
                        layer == "(update)";
    // Whether the scaler would have skipped the step that did not end is not known.
    const bool open =
        is_unfinished(sum.first_origin.step, m) && !m.steps.empty() && m.steps.back().has_loss_scale;
    return scaled &&
           (open || std::ranges::find(skips, sum.first_origin.step, &SkipVerdict::step) != skips.end());
}

namespace {

// The origin of values that run and twin share, a few steps before a run that ends with both losses lost. Where a
// program takes gradients of several values, the one of the step in which they began may be finite.
const OpSum* lost_at_the_end(const std::vector<const OpSum*>& origins, const RunModel& m) {
    constexpr int kFewSteps = 3;
    if (m.steps.empty() || !lost_in_both(m.steps.back())) return nullptr;
    const auto is_near = [&](const OpSum* s) {
        return s->first_origin.step.value + kFewSteps >= m.steps.back().step.value &&
               !before_the_model(*s, m);
    };
    const auto found = std::ranges::find_if(origins, is_near);
    return found == origins.end() ? nullptr : *found;
}

void judge_origins_and_losses(Case& c) {
    std::vector<const OpSum*> origins;
    for (const OpSum& sum : c.model.ops) {
        if (sum.first_origin.step.known() && !left_to_the_skips(sum, c.out.skips, c.model))
            origins.push_back(&sum);
    }
    std::ranges::sort(origins, {}, [](const OpSum* s) {
        return std::tuple(s->first_origin.step, s->at_origin.first_origin, s);
    });
    std::set<std::pair<std::string, Phase>> places;
    const OpSum* lost = nullptr;  // later findings may be its consequences
    for (const OpSum* sum : origins) {
        if (places.size() >= kMostPlaces) break;
        if (before_the_model(*sum, c.model)) continue;
        const Shared shared = share_of(*sum, c.model);
        if (shared == Shared::lost && !lost && places.empty()) lost = sum;
        if (shared != Shared::no) continue;
        if (places.emplace(sum->total.layer, sum->total.phase).second)
            c.out.findings.push_back(overflow_of(*sum, places.size() - 1));
    }
    if (!lost && places.empty()) lost = lost_at_the_end(origins, c.model);
    if (lost) c.out.findings.push_back(shared_nan(*lost, c.model));
    if (lost || !places.empty()) return;
    if (!judge_lost_weights(c)) judge_lost_loss(c);
}

}  // namespace

std::optional<Step> judge_nonfinite(Case& c) {
    const std::size_t before = c.out.findings.size();
    judge_origins_and_losses(c);
    std::optional<Step> first;
    for (std::size_t i = before; i < c.out.findings.size(); ++i)
        first = first ? std::min(*first, c.out.findings[i].step) : c.out.findings[i].step;
    return first;
}

}  // namespace mp::trace
