// MPT030, MPT031: values at the two ends of a narrow format. bf16 has the range of fp32 and is not judged.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
constexpr double kNegligible = 1e-4;  // of the median of the layers' gradients (root mean squares)

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

std::string flush_advice(const Case& c, Phase phase, DType dtype) {
    if (is_fp8(dtype))
        return "scale the tensor by a factor of its own before it is stored in " +
               std::string(name_of(dtype)) + ", or use bf16 here";
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
    if (others > 0) f.message += "; the same holds for " + counted(others, "other place");
    f.advice = flush_advice(c, phase, worst.op ? worst.op->total.dtype : worst.tensor->last.dtype);
    c.out.findings.push_back(std::move(f));
}

// The next op of the layer, or of the run if it is the last there: it reads what the op gives.
const OpRecord* reader_of(const OpRecord& op, const RunModel& m) {
    const OpRecord* next = nullptr;
    const auto key = [&](const OpRecord& o) { return std::pair(o.layer != op.layer, o.first); };
    for (const OpSum& s : m.ops) {
        const OpRecord& o = s.total;
        if (o.phase != op.phase || o.first <= op.first || o.compared == 0) continue;
        if (!next || key(o) < key(*next)) next = &o;
    }
    return next;
}

// Whether what reads the flushed values adds them to larger ones: the scores of a softmax, a residual. Its own results
// are then right.
bool is_absorbed(const OpRecord& op, const RunModel& m, double limit) {
    const OpRecord* next = reader_of(op, m);
    return next && next->twin_squares > 0 && relative(next->error_squares, next->twin_squares) <= limit;
}

std::string layer_of(const TensorSum& t) {
    return t.name.substr(0, std::min(t.name.rfind('.'), t.name.size()));
}

double rms_of(const TensorSum& t) {
    const TensorRecord& r = t.last;
    return r.compared > 0 ? std::sqrt(r.twin_squares / static_cast<double>(r.compared)) : 0;
}

// By layer: the largest root mean square of its parameters' gradients in the twin.
std::map<std::string, double> gradients_by_layer(const RunModel& m) {
    std::map<std::string, double> out;
    for (const TensorSum& t : m.tensors) {
        if (t.kind != TensorKind::gradient || t.last.compared == 0) continue;
        double& largest = out[layer_of(t)];
        largest = std::max(largest, rms_of(t));
    }
    return out;
}

// Layers whose gradients are nothing beside those of the others: attention over scores that are all nearly 0, in a
// new model. What they lose does not matter to the update.
std::set<std::string> layers_without_gradients(const RunModel& m) {
    const auto layers = gradients_by_layer(m);
    std::vector<double> all;
    for (const auto& [layer, rms] : layers)
        if (rms > 0) all.push_back(rms);
    if (all.empty()) return {};
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    const double usual = all[all.size() / 2];
    std::set<std::string> out;
    for (const auto& [layer, rms] : layers)
        if (rms < kNegligible * usual) out.insert(layer);
    return out;
}

// Whether the op serves only such gradients: those of its layer, or of the next layer in backward that has parameters.
class NegligibleGradients {
public:
    explicit NegligibleGradients(const RunModel& m)
        : model_(m), layers_(gradients_by_layer(m)), negligible_(layers_without_gradients(m)) {}

    bool of(const OpRecord& op) const {
        if (negligible_.empty()) return false;
        if (layers_.contains(op.layer)) return negligible_.contains(op.layer);
        const OpRecord* next = nullptr;
        for (const OpSum& s : model_.ops) {
            const OpRecord& o = s.total;
            if (o.phase != Phase::backward || o.first <= op.first || !layers_.contains(o.layer)) continue;
            if (!next || o.first < next->first) next = &o;
        }
        return next && negligible_.contains(next->layer);
    }

private:
    const RunModel& model_;
    std::map<std::string, double> layers_;
    std::set<std::string> negligible_;
};

// Reports the first op of a phase above the limit. Later ops only inherit the zeros.
void judge_flushed_ops(Case& c, Phase phase, double limit, std::size_t& found) {
    Flush first;
    const NegligibleGradients negligible(c.model);
    for (const OpSum& sum : c.model.ops) {
        const OpRecord& op = sum.total;
        if (op.phase != phase || !is_narrow(op.dtype) || op.compared < kFewest) continue;
        const double share = share_of(op.flushed_abs, op.zeros, op.subnormals, op.twin_abs, op.dtype);
        if (!(share > limit) ||
            !at_the_lower_end(op.subnormals, op.elements, op.amax, op.twin_amax, op.dtype))
            continue;
        if (phase == Phase::forward ? is_absorbed(op, c.model, limit) : negligible.of(op)) continue;
        ++found;
        if (!first.op || op.first < first.op->total.first) first = {share, &sum, nullptr};
    }
    if (first.op) report_flush(c, first, found - 1, limit, phase);
}

void judge_flushed_gradients(Case& c) {
    Flush worst;
    std::size_t found = 0;
    const auto negligible = layers_without_gradients(c.model);
    for (const TensorSum& t : c.model.tensors) {
        const TensorRecord& r = t.last;
        if (negligible.contains(layer_of(t))) continue;
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
    if (found > 1) f.message += "; the same holds for " + counted(found - 1, "other place");
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
