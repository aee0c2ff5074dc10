#include "runtime/judge/judge.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/policy_check.hpp"
#include "runtime/judge/rule_pack.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {

std::string_view name_of(Severity severity) {
    switch (severity) {
        case Severity::error:
            return "error";
        case Severity::warning:
            return "warning";
        case Severity::note:
            break;
    }
    return "note";
}

std::string_view name_of(Basis basis) {
    switch (basis) {
        case Basis::exact:
            return "exact";
        case Basis::sampled:
            return "sampled";
        case Basis::inferred:
            return "inferred";
        case Basis::unknown:
            break;
    }
    return "unknown";
}

bool is_raw(const RunModel& model) {
    return !model.ranks.empty() && std::ranges::all_of(model.ranks, [](const RankFacts& r) {
        return r.process.framework == kRawFramework;
    });
}

Finding finding(std::string_view rule, Severity severity) {
    Finding f;
    f.rule = rule;
    if (const RuleInfo* info = rule_called(rule)) f.name = info->name;
    f.severity = severity;
    return f;
}

Finding finding_at(std::string_view rule, Severity severity, const OpRecord& op) {
    Finding f = finding(rule, severity);
    f.layer = op.layer;
    f.op = op.op;
    f.phase = op.phase;
    f.source = op.source;
    return f;
}

const std::vector<Cell>* cells_by_step(const RunModel& m, const OpRecord& op) {
    const auto row = std::ranges::find_if(
        m.map, [&op](const LayerSteps& r) { return r.layer == op.layer && r.phase == op.phase; });
    return row == m.map.end() || m.column_steps != 1 ? nullptr : &row->cells;
}

std::string place_text(const OpRecord& op) {
    std::string out = op.layer.empty() ? std::string("an unnamed layer") : shown(op.layer);
    out += " " + shown(base_name(op.op));
    const std::string phase(name_of(op.phase));
    if (op.phase != Phase::unknown && op.layer != "(" + phase + ")") out += " " + phase;
    return out + " " + std::string(name_of(op.dtype));
}

bool has_twin(const RunModel& model) { return model.mode == Mode::step || model.mode == Mode::trajectory; }

std::string step_list(const std::vector<Step>& steps) {
    constexpr std::size_t kMost = 6;
    std::string out = steps.size() == 1 ? "step " : "steps ";
    for (std::size_t i = 0; i < steps.size() && i < kMost; ++i)
        out += (i ? ", " : "") + std::to_string(steps[i].value);
    if (steps.size() > kMost) out += " and " + std::to_string(steps.size() - kMost) + " more";
    return out;
}

std::string others_text(const std::vector<std::string>& layers) {
    constexpr std::size_t kNamed = 3;
    if (layers.empty()) return {};
    std::string out = "; and " + counted(layers.size(), "more layer") + ":";
    for (std::size_t i = 0; i < layers.size() && i < kNamed; ++i) out += (i ? ", " : " ") + shown(layers[i]);
    return layers.size() > kNamed ? out + ", ..." : out;
}

namespace {

// While GradScaler looks for its scale, a sum over ranks that overflows shows that the scale is too high. Once a step
// was taken at that scale, the reduction is the narrowest place of the run.
void name_reductions(const RunModel& model, std::vector<SkipVerdict>& skips) {
    double proven = 0;  // the highest scale of a step that was taken before
    auto step = model.steps.begin();
    for (SkipVerdict& v : skips) {
        for (; step != model.steps.end() && step->step < v.step; ++step)
            if (step->has_loss_scale && step->skipped == 0) proven = std::max(proven, step->loss_scale);
        if (v.scale_helps && proven >= v.loss_scale) v.cause = SkipCause::reduction_overflow;
    }
}

int rank_of(Phase phase) {
    switch (phase) {
        case Phase::data:
            return 0;
        case Phase::forward:
            return 1;
        case Phase::backward:
            return 2;
        case Phase::optimizer:
            return 3;
        case Phase::unknown:
            break;
    }
    return 4;
}

std::vector<Rung> ladder_of(const RunModel& model) {
    std::vector<Rung> out;
    for (const OpSum& sum : model.ops) {
        const OpRecord& op = sum.total;
        if (!is_low_precision(op.dtype) || (op.compared == 0 && op.loc_compared == 0)) continue;
        out.push_back({.layer = op.layer,
                       .op = op.op,
                       .phase = op.phase,
                       .dtype = op.dtype,
                       .introduced = introduced_phi(op),
                       .inherited = inherited_phi(op),
                       .total = total_phi(op),
                       .order = op.first});
    }
    std::ranges::sort(out, {}, [](const Rung& r) {
        return std::tuple(rank_of(r.phase), r.order, std::string_view(r.layer), std::string_view(r.op),
                          r.dtype);
    });
    return out;
}

// An overflow that a lower loss scale would have prevented comes last, because GradScaler causes some on purpose.
FirstOverflow first_overflow_of(const RunModel& model, const std::vector<SkipVerdict>& skips) {
    const OpSum* first = nullptr;
    auto key = [&](const OpSum& s) {
        return std::tuple(left_to_the_skips(s, skips, model), s.first_origin.step, s.at_origin.first_origin);
    };
    for (const OpSum& sum : model.ops) {
        if (!sum.first_origin.step.known() || is_harmless(sum, model)) continue;
        if (!first || key(sum) < key(*first)) first = &sum;
    }
    FirstOverflow out;
    if (!first) return out;
    const OpRecord& op = first->at_origin;
    out.found = true;
    out.layer = first->total.layer;
    out.op = first->total.op;
    out.source = op.source.empty() ? first->total.source : op.source;
    out.phase = first->total.phase;
    out.dtype = first->total.dtype;
    out.rank = first->first_origin.rank;
    out.device = device_of(op);
    out.step = first->first_origin.step;
    out.nonfinite =
        op.compared > 0 || op.nonfinite_real > 0 ? op.nonfinite_real : op.nan + op.pos_inf + op.neg_inf;
    out.elements = op.elements;
    out.input_amax = op.input_amax;
    out.twin_amax = op.twin_amax;
    return out;
}

// Rules of sampled and of inferred figures say so themselves. Which steps were skipped is told by the program, or
// follows from its ranges.
void name_bases(const RunModel& model, std::vector<Finding>& findings) {
    if (!is_raw(model)) return;
    const bool told = std::ranges::any_of(model.steps, &StepSummary::has_loss_scale);
    for (Finding& f : findings) {
        if (f.basis != Basis::unknown) continue;
        const bool of_skips = f.rule == "MPT002" || f.rule == "MPT003" || f.rule == "MPT004";
        f.basis = of_skips && !told ? Basis::inferred : Basis::exact;
    }
}

void sort_findings(std::vector<Finding>& findings) {
    std::ranges::sort(findings, {}, [](const Finding& f) {
        return std::tuple(-static_cast<int>(f.severity), -f.importance, std::string_view(f.rule), f.step,
                          std::string_view(f.layer), std::string_view(f.op), std::string_view(f.message));
    });
}

}  // namespace

Judgement judge(const RunModel& model, const Limits& limits, const std::vector<std::string>& policies) {
    Judgement out;
    out.skips = verdicts_of(twin_starts_anew(model) ? without_twin(model.skips) : model.skips);
    name_reductions(model, out.skips);
    if (model.step_count > 0)
        out.samples_lost = static_cast<double>(model.skipped_steps) / static_cast<double>(model.step_count);
    out.ladder = ladder_of(model);
    out.first_overflow = first_overflow_of(model, out.skips);
    out.loss = agreement_of(model, limits);
    Case c{model, limits, out};
    judge_skips(c, judge_nonfinite(c));
    const std::set<OpPlace> sums = judge_sums(c);
    judge_ops(c, sums);
    judge_accumulation(c, sums);
    judge_totals(c, sums);
    judge_amplified(c, judge_integers(c));
    judge_narrowed(c);
    judge_range(c);
    judge_updates(c);
    judge_rounded(c);
    judge_scalars(c);
    judge_state(c);
    judge_reductions(c);
    judge_copies(c);
    judge_scaled_clip(c);
    judge_gradients(c);
    judge_products(c);
    judge_parameters(c);
    judge_departure(c);
    judge_policies(c, policies);
    judge_coverage(c);
    name_bases(model, out.findings);
    sort_findings(out.findings);
    return out;
}

}  // namespace mp::trace
