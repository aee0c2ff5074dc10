// MPT002, MPT003, MPT004. GradScaler starts with a scale that is too high on purpose, so its first halvings and the
// steps that they skip are normal.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

// A scaler finds its scale within its first steps; a later skip is not part of the warm-up.
constexpr std::int64_t kWarmUpSteps = 100;
constexpr double kUsualFirstScale = 65536;  // of GradScaler; DeepSpeed starts at 2^32, 16 halvings higher

bool by_the_scale(const SkipVerdict& v) {
    return v.cause == SkipCause::scale_too_high || v.cause == SkipCause::unknown || v.scale_helps;
}

std::size_t usual_halvings(const Case& c) {
    double first = 0;
    for (const StepSummary& s : c.model.steps) {
        if (s.has_loss_scale) first = first > 0 ? first : s.loss_scale;
    }
    const double above =
        first > kUsualFirstScale && std::isfinite(first) ? std::log2(first / kUsualFirstScale) : 0;
    return static_cast<std::size_t>(std::max(c.limits.warm_up_skips, 0)) + static_cast<std::size_t>(above);
}

// The skips after the warm-up whose cause is the scale or unknown.
std::vector<const SkipVerdict*> counted_skips(const Case& c) {
    std::vector<const SkipVerdict*> out;
    std::size_t warm_up = usual_halvings(c);
    for (const SkipVerdict& v : c.out.skips) {
        if (!by_the_scale(v)) continue;
        if (warm_up > 0 && v.step.value < kWarmUpSteps) {
            --warm_up;
            continue;
        }
        out.push_back(&v);
    }
    return out;
}

// The length of the longest run of consecutive steps, and its first step.
std::pair<std::size_t, Step> longest_run(const std::vector<const SkipVerdict*>& skips) {
    std::pair<std::size_t, Step> best{0, {}};
    std::size_t length = 0;
    for (std::size_t i = 0; i < skips.size(); ++i) {
        const bool follows = i > 0 && skips[i]->step == skips[i - 1]->step.next();
        length = follows ? length + 1 : 1;
        if (length > best.first)
            best = {length, Step{skips[i]->step.value - static_cast<std::int64_t>(length) + 1}};
    }
    return best;
}

std::string advice_for(const SkipVerdict& v) {
    const std::string layer = v.layer.empty() ? "the op that made it" : shown(v.layer);
    switch (v.cause) {
        case SkipCause::forward_overflow:
            return "run " + layer + " in fp32 or bf16; lowering the loss scale does not help";
        case SkipCause::reduction_overflow:
            return "reduce in fp32, or divide by the number of ranks before the sum";
        case SkipCause::invalid_op:
            return v.also_in_twin
                       ? "guard the operation (eps, clamp): fp32 does not cure it"
                       : "guard the operation (eps, clamp), or run it in fp32 where its inputs are large: "
                         "--mode trajectory tells which cures it";
        case SkipCause::bad_data:
            return "look at the batch of this step: its values are not finite";
        case SkipCause::scale_too_high:
        case SkipCause::unknown:
            break;
    }
    return "record this step with --mode trajectory to see where it begins";
}

void judge_rate(Case& c, const std::vector<const SkipVerdict*>& skips) {
    const auto steps = static_cast<double>(c.model.step_count);
    // At least one is free: a growing scale is meant to overflow now and then.
    const double allowed = std::max(1.0, std::floor(c.limits.skips_per_1000 * steps / 1000));
    const auto [consecutive, since] = longest_run(skips);
    const bool too_many = static_cast<double>(skips.size()) > allowed;
    const bool in_a_row = consecutive > static_cast<std::size_t>(std::max(c.limits.consecutive_skips, 0));
    if (!too_many && !in_a_row) return;
    const SkipVerdict& first = *skips.front();
    Finding f = finding("MPT002", Severity::error);
    f.layer = first.layer;
    f.op = first.op;
    f.phase = first.op.empty() ? Phase::unknown : Phase::backward;
    f.step = in_a_row ? since : first.step;
    f.value = in_a_row ? static_cast<double>(consecutive) : static_cast<double>(skips.size());
    f.limit = in_a_row ? c.limits.consecutive_skips : allowed;
    f.unit = "steps";
    f.message = counted(skips.size(), "step") + " of " + figure(steps) + " skipped after warm-up (at most " +
                figure(allowed) + ")";
    if (in_a_row)
        f.message +=
            ", " + std::to_string(consecutive) + " in a row from step " + std::to_string(since.value);
    f.message += "; " + first.why;
    const auto reduction = std::ranges::find(skips, SkipCause::reduction_overflow,
                                             [](const SkipVerdict* v) { return v->cause; });
    f.advice = reduction != skips.end()
                   ? advice_for(**reduction)
                   : "let the loss scale grow more slowly (growth_interval), or start it lower";
    f.importance = importance::kSkippedSteps(c.out.samples_lost);
    c.out.findings.push_back(std::move(f));
}

void judge_scale(Case& c) {
    std::size_t warm_up = usual_halvings(c);
    double top = 0, lowest = 0, before = 0;
    Step at;
    for (const StepSummary& s : c.model.steps) {
        if (!s.has_loss_scale || !(s.loss_scale > 0) || !std::isfinite(s.loss_scale)) continue;
        const bool fell = before > 0 && s.loss_scale < before;
        before = s.loss_scale;
        if (fell && warm_up > 0 && s.step.value < kWarmUpSteps) {
            --warm_up;
            top = lowest = s.loss_scale;
            continue;
        }
        top = std::max(top, s.loss_scale);
        if (lowest == 0 || s.loss_scale < lowest) lowest = s.loss_scale, at = s.step;
    }
    const double halvings = top > 0 && lowest > 0 ? std::log2(top / lowest) : 0;
    if (halvings <= c.limits.scale_halvings) return;
    Finding f = finding("MPT003", Severity::error);
    f.step = at;
    f.value = halvings;
    f.limit = c.limits.scale_halvings;
    f.message = "the loss scale fell from " + figure(top) + " to " + figure(lowest) + ", " +
                figure(halvings) + " halvings (at most " + std::to_string(c.limits.scale_halvings) +
                "), by step " + std::to_string(at.value);
    f.advice = "see what skips the steps: a scale that only falls is rarely the cause";
    f.importance = importance::kScaleCollapse();
    c.out.findings.push_back(std::move(f));
}

Phase phase_of(const RunModel& model, Step step) {
    for (const SkipFacts& s : model.skips) {
        if (s.step == step && !s.origin.op.empty()) return s.origin.phase;
    }
    return Phase::unknown;
}

void judge_causes(Case& c) {
    std::map<std::tuple<SkipCause, std::string, std::string>, std::vector<const SkipVerdict*>> groups;
    for (const SkipVerdict& v : c.out.skips) {
        if (!by_the_scale(v)) groups[{v.cause, v.layer, v.op}].push_back(&v);
    }
    for (const auto& [key, group] : groups) {
        const SkipVerdict& first = *group.front();
        std::vector<Step> steps;
        for (const SkipVerdict* v : group) steps.push_back(v->step);
        Finding f = finding("MPT004", Severity::error);
        f.layer = first.layer;
        f.op = first.op;
        f.rank = first.rank;
        f.step = first.step;
        f.phase = phase_of(c.model, first.step);
        f.value = static_cast<double>(group.size());
        f.unit = "steps";
        f.message = counted(group.size(), "step") + " of " + figure(static_cast<double>(c.model.step_count)) +
                    " skipped by " + std::string(name_of(first.cause)) + " (" + step_list(steps) +
                    "): " + first.why;
        f.advice = advice_for(first);
        f.importance = importance::kSkipCause(static_cast<double>(first.step.value));
        c.out.findings.push_back(std::move(f));
    }
}

void judge_disagreement(Case& c, std::optional<Step> first_nonfinite) {
    std::vector<Step> steps;
    const SkipVerdict* first = nullptr;
    for (const SkipVerdict& v : c.out.skips) {
        if (!v.ranks_disagree) continue;
        if (!first) first = &v;
        steps.push_back(v.step);
    }
    if (!first) return;
    Finding f = finding("MPT004", Severity::error);
    f.layer = first->layer;
    f.op = first->op;
    f.phase = Phase::optimizer;  // one rank steps and another does not; the message names the cause
    f.rank = first->rank;
    f.step = first->step;
    f.value = static_cast<double>(steps.size());
    f.unit = "steps";
    f.message = "ranks disagree on skipping " + step_list(steps) + ": " + first->why;
    f.advice = "share the non-finite flag over all ranks (ShardedGradScaler, or an all_reduce of found_inf)";
    const bool is_first = !(first_nonfinite && *first_nonfinite < first->step) && by_the_scale(*first);
    f.importance = is_first ? importance::kRanksDisagreeFirst() : importance::kRanksDisagree();
    c.out.findings.push_back(std::move(f));
}

}  // namespace

void judge_skips(Case& c, std::optional<Step> first_nonfinite) {
    judge_disagreement(c, first_nonfinite);
    judge_causes(c);
    const auto skips = counted_skips(c);
    if (!skips.empty()) judge_rate(c, skips);
    judge_scale(c);
}

}  // namespace mp::trace
