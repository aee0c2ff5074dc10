// MPT030, MPT031: values at the two ends of a narrow format. bf16 has the range of fp32 and is not judged.

#include <algorithm>
#include <cmath>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 1024;
constexpr double kSubnormalShare = 0.005;

bool is_narrow(DType d) { return d == DType::fp16 || is_fp8(d); }

// Whether the values are at the lower end of the format. Zeros alone do not prove underflow: in a run that has drifted
// from its twin, a ReLU has zeros in other places. With underflow some values are subnormal, or no normal value is
// left.
bool at_the_lower_end(std::uint64_t subnormals, std::uint64_t elements, double amax, double twin_amax,
                      DType dtype) {
    const FloatFormat* format = format_of(dtype);
    if (!format || elements == 0) return false;
    if (static_cast<double>(subnormals) >= kSubnormalShare * static_cast<double>(elements)) return true;
    return amax < min_normal(*format) && twin_amax > 0 && twin_amax < 16 * min_normal(*format);
}

struct Flush {
    double share = 0;
    const OpSum* op = nullptr;
    const TensorSum* tensor = nullptr;
};

// The share that underflow can explain at most. A zero in place of a larger value of the twin shows that the run has
// drifted from its twin. Without any subnormals the hardware flushes them too, so a zero can hide up to the smallest
// normal value.
double share_of(double flushed, std::uint64_t zeros, std::uint64_t subnormals, double all, DType dtype) {
    const FloatFormat* format = format_of(dtype);
    if (!format || !(all > 0)) return 0;
    const double each = subnormals > 0 ? min_subnormal(*format) : min_normal(*format);
    return std::min(flushed, each * static_cast<double>(zeros)) / all;
}

std::string flush_advice(const Case& c, Phase phase) {
    if (phase != Phase::backward) return "run this layer in bf16 or fp32: its values are below the format";
    double scale = 0;
    for (const StepSummary& s : c.model.steps) {
        if (s.has_loss_scale) scale = s.loss_scale;
    }
    return scale > 0 ? "raise the loss scale above " + figure(scale) + ", or use bf16 here"
                     : "scale the loss (GradScaler), or use bf16 here";
}

void report_flush(Case& c, const Flush& worst, std::size_t others, double limit, Phase phase) {
    Finding f = worst.op ? finding_at("MPT030", Severity::error, worst.op->total)
                         : finding("MPT030", Severity::error);
    std::string where;
    if (worst.op) {
        f.step = worst.op->first_step;
        where = place_text(worst.op->total);
    } else {
        const std::string& name = worst.tensor->name;
        f.layer = name.substr(0, name.rfind('.') == std::string::npos ? name.size() : name.rfind('.'));
        f.phase = phase;
        f.step = worst.tensor->last_step;
        where = "the gradient " + shown(name);
    }
    f.value = worst.share;
    f.limit = limit;
    f.unit = "share";
    f.importance = importance::kFlushToZero(std::min(worst.share, 1.0));
    f.message =
        where + " loses " + percent(worst.share) + " of its magnitude to zero (limit " + percent(limit) + ")";
    if (others > 0) f.message += "; so do " + counted(others, "other place");
    f.advice = flush_advice(c, phase);
    c.out.findings.push_back(std::move(f));
}

// Reports the first op of a phase above the limit. Later ops only inherit the zeros.
void judge_flushed_ops(Case& c, Phase phase, double limit, std::size_t& found) {
    Flush first;
    for (const OpSum& sum : c.model.ops) {
        const OpRecord& op = sum.total;
        if (op.phase != phase || !is_narrow(op.dtype) || op.compared < kFewest) continue;
        const double share = share_of(op.flushed_abs, op.zeros, op.subnormals, op.twin_abs, op.dtype);
        if (!(share > limit) ||
            !at_the_lower_end(op.subnormals, op.elements, op.amax, op.twin_amax, op.dtype))
            continue;
        ++found;
        if (!first.op || op.first < first.op->total.first) first = {share, &sum, nullptr};
    }
    if (first.op) report_flush(c, first, found - 1, limit, phase);
}

void judge_flushed_gradients(Case& c) {
    Flush worst;
    std::size_t found = 0;
    for (const TensorSum& t : c.model.tensors) {
        const TensorRecord& r = t.last;
        if (t.kind != TensorKind::gradient || !is_narrow(r.dtype) || r.compared < kFewest) continue;
        const double share = share_of(r.flushed_abs, r.zeros, r.subnormals, r.twin_abs, r.dtype);
        if (!(share > c.limits.flush_gradients)) continue;
        if (!at_the_lower_end(r.subnormals, r.elements, r.amax, r.twin_amax, r.dtype)) continue;
        ++found;
        if (share > worst.share) worst = {share, nullptr, &t};
    }
    if (worst.tensor) report_flush(c, worst, found - 1, c.limits.flush_gradients, Phase::backward);
}

// Masks are filled with the largest value, and adding to it does not change it.
bool is_masked(const OpRecord& op, const FloatFormat& format) {
    return is_fill(op.op) || op.amax >= max_finite(format) || one_magnitude(op);
}

void judge_near_overflow(Case& c) {
    const OpSum* worst = nullptr;
    std::size_t found = 0;
    for (const OpSum& sum : c.model.ops) {
        const OpRecord& op = sum.total;
        const FloatFormat* format = format_of(op.dtype);
        // fp8 values are scaled to the end of their format, gradients by the loss scale.
        if (op.dtype != DType::fp16 || op.phase != Phase::forward || op.layer == "(scaler)" || !format)
            continue;
        if (sum.first_origin.step.known() || op.elements < kFewest || is_masked(op, *format)) continue;
        if (!(op.amax > max_finite(*format) * std::exp2(-c.limits.near_overflow_bits))) continue;
        ++found;
        if (!worst || op.amax > worst->total.amax) worst = &sum;
    }
    if (!worst) return;
    const double largest = max_finite(*format_of(worst->total.dtype));
    Finding f = finding_at("MPT031", Severity::warning, worst->total);
    f.step = worst->first_step;
    f.value = worst->total.amax;
    f.limit = largest * std::exp2(-c.limits.near_overflow_bits);
    f.importance = importance::kNearOverflow(f.value / largest);
    f.message = place_text(worst->total) + " reaches " + figure(f.value) + ", " +
                figure(std::log2(largest / f.value)) + " bits below the largest value " + figure(largest);
    if (found > 1) f.message += "; so do " + counted(found - 1, "other place");
    f.advice = "run it in bf16 or fp32, or scale its inputs down";
    c.out.findings.push_back(std::move(f));
}

}  // namespace

void judge_range(Case& c) {
    std::size_t gradients = 0, activations = 0;
    judge_flushed_ops(c, Phase::forward, c.limits.flush_activations, activations);
    judge_flushed_ops(c, Phase::backward, c.limits.flush_gradients, gradients);
    if (gradients == 0) judge_flushed_gradients(c);
    judge_near_overflow(c);
}

}  // namespace mp::trace
