#include "runtime/judge/skips.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

bool is_data(const OpRecord& r) { return r.phase == Phase::data || r.layer == "(data)"; }
// Whether the loss scale affects the op. The scaler multiplies the loss after the forward, so an overflow there is due
// to the scale. Between backward and step() the gradients still contain the scale or are divided by it.
bool under_the_scale(const OpRecord& r) {
    return r.phase == Phase::backward || r.layer == "(scaler)" || r.layer == "(update)";
}
bool is_collective(const OpRecord& r) {
    return r.op.starts_with("c10d::") || r.op.starts_with("_c10d_functional::");
}
bool has_twin(const OpRecord& r) { return r.compared > 0 || r.nonfinite_real > 0 || r.twin_amax > 0; }

// Whether the twin has the non-finite values at the same places. Low precision is then not the cause.
bool twin_too(const OpRecord& r) {
    return has_twin(r) && r.nan + r.pos_inf + r.neg_inf > 0 && r.nonfinite_real == 0;
}

std::string place_of(const OpRecord& r) {
    std::string out = r.layer.empty() ? "an unnamed layer" : shown(r.layer);
    return out + " (" + shown(r.op) + ", " + std::string(name_of(r.phase)) + ", " +
           std::string(name_of(r.dtype)) + ")";
}

std::string largest_of(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? figure(max_finite(*format)) : std::string("unknown");
}

// The first gradient, by name, that is finite in the twin and not in the run; null: there is none.
const SkipFacts::Gradient* culprit(const SkipFacts& facts) {
    for (const auto& g : facts.gradients) {
        if (g.nonfinite > 0) return &g;
    }
    return nullptr;
}

// The largest power of two below `scale` at which `scaled_amax` fits `dtype`; 0: none down to 1.
double fitting_scale(double scaled_amax, double scale, DType dtype) {
    const FloatFormat* format = format_of(dtype);
    if (!format || !(scale >= 1) || !std::isfinite(scaled_amax) || scaled_amax <= 0) return 0;
    const double unscaled = scaled_amax / scale;
    const double largest = std::exp2(std::floor(std::log2(max_finite(*format) / unscaled)));
    return largest >= 1 ? std::min(largest, scale / 2) : 0;
}

void settle(SkipVerdict& v, SkipCause cause, std::string why) {
    v.cause = cause;
    v.why = std::move(why);
}

// Judges gradients that overflow after a finite forward: whether a lower scale would have prevented it.
void judge_backward(const SkipFacts& facts, SkipVerdict& v) {
    const SkipFacts::Gradient* g = culprit(facts);
    const bool known = !facts.origin.op.empty();
    const std::string where = known ? place_of(facts.origin) : "the gradient of " + shown(g->name);
    if (!facts.has_scale)
        return settle(v, SkipCause::unknown, where + " is not finite, and no loss scale is known");
    const double amax = known && has_twin(facts.origin) ? facts.origin.twin_amax : g ? g->twin_amax : 0;
    const DType dtype = known ? facts.origin.dtype : g->dtype;
    const std::string scale = "at loss scale " + figure(facts.loss_scale);
    if (amax <= 0) {
        v.by_elimination = !known;
        const std::string left = known ? " left " + std::string(name_of(dtype)) + " " : " is not finite ";
        if (facts.loss_scale > 1)
            return settle(v, SkipCause::scale_too_high,
                          where + left + scale + " while the loss is finite; no twin to compare with");
        return settle(v, SkipCause::unknown, where + " is not finite " + scale + ", which cannot be lowered");
    }
    const FloatFormat* format = format_of(dtype);
    const double fits = fitting_scale(amax, facts.loss_scale, dtype);
    const std::string reaches = "the fp32 twin reaches " + figure(amax);
    if (format && amax <= max_finite(*format)) {
        // The twin's value fits this format, so an earlier gradient in a narrower format overflowed. It is scaled too.
        return settle(v, facts.loss_scale > 1 ? SkipCause::scale_too_high : SkipCause::unknown,
                      where + " is not finite " + scale + "; " + reaches + ", which " +
                          std::string(name_of(dtype)) + " holds: it began in a gradient before it");
    }
    const std::string twin =
        reaches + ", the largest " + std::string(name_of(dtype)) + " is " + largest_of(dtype);
    if (fits > 0)
        return settle(
            v, SkipCause::scale_too_high,
            where + " left the format " + scale + ": " + twin + "; it fits at scale " + figure(fits));
    settle(v, SkipCause::unknown,
           where + " left the format " + scale + ": " + twin + ", and no scale of 1 or more helps");
}

void judge_forward(const SkipFacts& facts, SkipVerdict& v) {
    const OpRecord& o = facts.origin;
    const bool only_nan = o.nan > 0 && o.pos_inf + o.neg_inf == 0;
    std::string why = place_of(o) + " made " + (only_nan ? "NaN" : "infinity") + " from finite inputs";
    if (o.input_amax > 0) why += " of at most " + figure(o.input_amax);
    if (!has_twin(o)) {
        // Without a twin, NaN from finite inputs is an invalid operation; infinity is an overflow.
        return settle(v, only_nan ? SkipCause::invalid_op : SkipCause::forward_overflow, why);
    }
    why += "; the fp32 twin is finite, at most " + figure(o.twin_amax) + ", and the largest " +
           std::string(name_of(o.dtype)) + " is " + largest_of(o.dtype);
    settle(v, SkipCause::forward_overflow, why + "; lowering the loss scale does not help");
}

void judge_origin(const SkipFacts& facts, SkipVerdict& v) {
    const OpRecord& o = facts.origin;
    if (is_data(o)) return settle(v, SkipCause::bad_data, "the inputs are not finite: " + place_of(o));
    if (twin_too(o)) {
        v.also_in_twin = true;
        return settle(v, SkipCause::invalid_op,
                      place_of(o) + " made a non-finite value from finite inputs, and so did the fp32 twin");
    }
    if (is_collective(o))
        return settle(v, SkipCause::reduction_overflow,
                      place_of(o) + ": every rank's values are finite, their reduction is not");
    if (under_the_scale(o)) return judge_backward(facts, v);
    if (o.phase == Phase::optimizer) {
        return settle(v, SkipCause::reduction_overflow,
                      place_of(o) + " made a non-finite value from finite gradients" +
                          (has_twin(o) ? "; the fp32 twin reaches " + figure(o.twin_amax) : std::string()));
    }
    judge_forward(facts, v);
}

std::string summed(const SkipFacts& facts) {
    std::vector<std::string> names;
    for (const auto& g : facts.gradients)
        if (g.nonfinite > 0 && g.nonfinite_twin == 0) names.push_back(g.name);
    return of_gradients(names);
}

// A sum over n ranks is at most n times the largest value, so a loss scale divided by n prevents the overflow.
void judge_reduction(const SkipFacts& facts, SkipVerdict& v) {
    const std::size_t ranks = std::max<std::size_t>(facts.skipped_by.size() + facts.stepped_by.size(), 1);
    const double fits = facts.loss_scale / std::exp2(std::ceil(std::log2(static_cast<double>(ranks))));
    v.op = facts.reduction_op;
    v.layer = v.parameter.substr(0, v.parameter.rfind('.') == std::string::npos ? 0 : v.parameter.rfind('.'));
    std::string why =
        (facts.reduction_op.empty() ? std::string("a reduction") : shown(facts.reduction_op)) +
        summed(facts) + " made " +
        (facts.reductions_made_nonfinite > 0 ? counted(facts.reductions_made_nonfinite, "non-finite value")
                                             : std::string("non-finite values")) +
        " from inputs that are finite on every rank";
    if (!facts.has_scale || !(fits >= 1) || !std::isfinite(fits))
        return settle(v, SkipCause::reduction_overflow, std::move(why));
    v.scale_helps = true;
    settle(v, SkipCause::scale_too_high,
           why + " at loss scale " + figure(facts.loss_scale) + "; a sum over " + counted(ranks, "rank") +
               " fits at scale " + figure(fits));
}

// Without a twin: every rank gave finite fp16 values to its reductions, and gradients came back that are not.
bool seen_from_outside(const SkipFacts& facts) {
    return facts.finite_reductions > 0 && facts.lost_reductions == 0 && facts.loss_finite && culprit(facts);
}

void judge_cause(const SkipFacts& facts, SkipVerdict& v) {
    const bool reduction = facts.reductions_made_nonfinite > 0 || seen_from_outside(facts);
    if (reduction && (facts.origin.op.empty() || is_collective(facts.origin)))
        return judge_reduction(facts, v);
    if (!facts.origin.op.empty()) return judge_origin(facts, v);
    const SkipFacts::Gradient* g = culprit(facts);
    if (!facts.loss_finite && !facts.twin_loss_finite)
        return settle(
            v, SkipCause::bad_data,
            "the loss is not finite, in the fp32 twin too, and no operation made that from finite inputs");
    if (!g) return settle(v, SkipCause::unknown, "nothing non-finite was observed");
    if (g->nonfinite_twin > 0) {
        v.also_in_twin = true;
        return settle(v, SkipCause::invalid_op,
                      "the gradient of " + shown(g->name) + " is not finite, in the fp32 twin neither");
    }
    if (!facts.loss_finite)
        return settle(v, SkipCause::unknown, "the loss is not finite, and where that began was not observed");
    judge_backward(facts, v);
}

bool has_nothing_to_do_with_the_scale(SkipCause cause) {
    return cause == SkipCause::forward_overflow || cause == SkipCause::invalid_op ||
           cause == SkipCause::bad_data;
}

// Takes the cause from a step whose operations were not measured, where a skip before it, at a scale that was no lower,
// had another cause than the scale: that cause may have come back.
void doubt(SkipVerdict& v, const std::vector<SkipVerdict>& before) {
    if (!v.by_elimination || v.cause != SkipCause::scale_too_high) return;
    const auto other = std::ranges::find_if(before, [&](const SkipVerdict& b) {
        return has_nothing_to_do_with_the_scale(b.cause) && b.loss_scale >= v.loss_scale;
    });
    if (other == before.end()) return;
    settle(v, SkipCause::unknown,
           v.why + "; this step's operations were not measured, and step " +
               std::to_string(other->step.value) + " was skipped by " + std::string(name_of(other->cause)));
}

std::string rank_list(const std::vector<Rank>& ranks) {
    std::string out;
    for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
        out += (i ? ", " : "") + std::to_string(ranks[i].value);
    return ranks.size() > 8 ? out + ", ..." : out;
}

}  // namespace

std::string_view name_of(SkipCause cause) {
    switch (cause) {
        case SkipCause::scale_too_high:
            return "scale too high";
        case SkipCause::forward_overflow:
            return "forward overflow";
        case SkipCause::reduction_overflow:
            return "reduction overflow";
        case SkipCause::invalid_op:
            return "invalid operation";
        case SkipCause::bad_data:
            return "bad data";
        case SkipCause::unknown:
            break;
    }
    return "unknown";
}

std::string of_gradients(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 2;
    if (names.empty()) return {};
    std::string out = names.size() == 1 ? " of the gradient of " : " of the gradients of ";
    for (std::size_t i = 0; i < names.size() && i < kMost; ++i) out += (i ? ", " : "") + shown(names[i]);
    return names.size() > kMost ? out + " and " + std::to_string(names.size() - kMost) + " more" : out;
}

SkipVerdict verdict_of(const SkipFacts& facts) {
    SkipVerdict v;
    v.step = facts.step;
    v.loss_scale = facts.has_scale ? facts.loss_scale : 0;
    v.layer = facts.origin.layer;
    v.op = facts.origin.op;
    v.rank = facts.origin_rank;
    v.device = device_of(facts.origin);
    if (const SkipFacts::Gradient* g = culprit(facts)) {
        v.parameter = g->name;
        if (facts.origin.op.empty()) v.rank = g->rank;
    }
    v.ranks_disagree = !facts.skipped_by.empty() && !facts.stepped_by.empty();
    judge_cause(facts, v);
    if (v.ranks_disagree)
        v.why += "; ranks " + rank_list(facts.skipped_by) + " skipped it, ranks " +
                 rank_list(facts.stepped_by) + " stepped";
    return v;
}

std::vector<SkipVerdict> verdicts_of(const std::vector<SkipFacts>& skips) {
    std::vector<SkipVerdict> out;
    for (const SkipFacts& facts : skips) {
        SkipVerdict v = verdict_of(facts);
        doubt(v, out);
        out.push_back(std::move(v));
    }
    return out;
}

std::vector<SkipFacts> without_twin(std::vector<SkipFacts> skips) {
    for (SkipFacts& facts : skips) {
        facts.twin_loss_finite = true;
        facts.origin.compared = facts.origin.nonfinite_real = 0;
        facts.origin.twin_amax = 0;
        for (SkipFacts::Gradient& g : facts.gradients) {
            g.twin_amax = 0;
            g.nonfinite_twin = 0;
        }
    }
    return skips;
}

}  // namespace mp::trace
