// MPT041: scalars that feed every update. A step counter in bf16 stops at 256, a squared norm that is added up in
// 16 bits loses its small addends. Tensors below 64 elements are too small for the rules of ops and updates.

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kSmall = 64;        // elements
constexpr std::uint64_t kFewestFrozen = 2;  // samples in which nothing moved
constexpr std::uint64_t kFewestAdded = 3;   // additions to one value
constexpr double kFarInU = 4;               // unit roundoffs: more than a few roundings explain
constexpr double kShareOfScalar = 0.25;     // of a squared norm's error; a factor has the half of it
constexpr double kOverGradients = 2;        // times the error of the gradients, which the scalar may inherit

double far_from_twin(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? kFarInU * unit_roundoff(*format) : INFINITY;
}

std::string error_text(double error, double limit) {
    return "off by " + percent(error) + " of its fp32 twin (limit " + percent(limit) + ")";
}

void report(Case& c, Finding f, double error, double limit) {
    if (f.phase == Phase::unknown) f.phase = Phase::optimizer;
    f.value = error;
    f.limit = limit;
    f.unit = "share";
    f.importance = importance::kWrongScalar();
    f.advice = "keep counters, norms, factors and averages of one value in fp32: they cost no memory";
    c.out.findings.push_back(std::move(f));
}

// Whether a value that the optimizer keeps stopped moving while its twin went on. One that only lags by a rounding has
// converged.
bool stands_still(const TensorSum& t) {
    const bool kept = t.kind == TensorKind::optimizer_state || t.kind == TensorKind::buffer;
    if (!kept || !is_low_precision(t.last.dtype) || t.last.elements >= kSmall || t.last.compared == 0)
        return false;
    const double error = relative_l2(t.last);
    return t.frozen >= kFewestFrozen && error > far_from_twin(t.last.dtype) && std::isfinite(error);
}

bool is_scalar(const OpRecord& op) {
    return op.phase == Phase::optimizer && is_low_precision(op.dtype) && op.calls > 0 && op.compared > 0 &&
           op.elements == op.calls;
}

// The one op of the optimizer that adds to single values of this dtype; null: none, or several.
const OpRecord* adder_of(const RunModel& m, const TensorRecord& value) {
    const auto adds = [&value](const OpSum& s) {
        return is_scalar(s.total) && is_sum_step(s.total.op) && s.total.dtype == value.dtype;
    };
    const auto found = std::ranges::find_if(m.ops, adds);
    const bool is_one =
        value.elements == 1 && found != m.ops.end() && std::none_of(std::next(found), m.ops.end(), adds);
    return is_one ? &found->total : nullptr;
}

// Every parameter may have a counter of its own: one finding for all.
bool judge_kept(Case& c) {
    const TensorSum* worst = nullptr;
    std::uint64_t others = 0;
    for (const TensorSum& t : c.model.tensors) {
        if (!stands_still(t)) continue;
        others += worst != nullptr;
        if (!worst || relative_l2(t.last) > relative_l2(worst->last)) worst = &t;
    }
    if (!worst) return false;
    const TensorRecord& last = worst->last;
    const double error = relative_l2(last), limit = far_from_twin(last.dtype);
    Finding f = finding("MPT041", Severity::error);
    f.layer = worst->name.substr(0, std::min(worst->name.rfind('.'), worst->name.size()));
    f.step = worst->first_stagnant;
    if (const OpRecord* adder = adder_of(c.model, last)) f.op = adder->op, f.source = adder->source;
    f.message = std::string(name_of(worst->kind)) + " " + shown(worst->name) + " (" +
                std::string(name_of(last.dtype)) + ", " + counted(last.elements, "element") +
                ") stands still at " + figure(last.amax) + " where its fp32 twin reaches " +
                figure(last.twin_amax) + ": " + error_text(error, limit);
    if (others > 0) f.message += "; the same holds for " + counted(others, "other");
    report(c, std::move(f), error, limit);
    return true;
}

// The largest error that a scalar can inherit from the gradients.
double error_of_gradients(const RunModel& m) {
    double errors = 0, squares = 0;
    for (const TensorSum& t : m.tensors) {
        if (t.kind != TensorKind::gradient || t.last.compared == 0) continue;
        errors += t.last.error_squares;
        squares += t.last.twin_squares;
    }
    return relative(errors, squares);
}

// Whether every addition left one value as it was, in all sampled steps, and the twin went on: a counter that does not
// count. A small number that is added to a norm, so that nothing is divided by 0, is added to another value each time.
bool never_counts(const OpRecord& op) {
    const FloatFormat* const format = format_of(op.dtype);
    return is_scalar(op) && is_sum_step(op.op) && op.added >= kFewestAdded && op.absorbed == op.added &&
           op.amin == op.amax && format &&
           relative(op.error_squares, op.twin_squares) > unit_roundoff(*format);
}

bool judge_counters(Case& c) {
    const auto counter =
        std::ranges::find_if(c.model.ops, [](const OpSum& s) { return never_counts(s.total); });
    if (counter == c.model.ops.end()) return false;
    const OpRecord& op = counter->total;
    const double error = relative(op.error_squares, op.twin_squares);
    Finding f = finding_at("MPT041", Severity::error, op);
    f.step = counter->first_step;
    f.message = place_text(op) + " leaves a single value at " + figure(op.amax) +
                " in every sampled step, where its fp32 twin reaches " + figure(op.twin_amax) +
                ": what is added is below half of its last place";
    report(c, std::move(f), error, 0);
    return true;
}

// Whether a counter of a run without a twin has stopped: from some sampled step on nothing moves that a number is added
// to, though it moved before. The adapter counts only values to which the program adds the same number again and again.
bool has_stopped(const OpSum& s) {
    const OpRecord& op = s.total;
    return op.phase != Phase::backward && is_low_precision(op.dtype) && is_sum_step(op.op) &&
           s.still >= kFewestAdded * std::max<std::uint64_t>(s.ranks, 1) && s.last_moved < s.first_still;
}

void judge_stopped(Case& c) {
    const auto counter = std::ranges::find_if(c.model.ops, has_stopped);
    if (counter == c.model.ops.end()) return;
    const OpRecord& op = counter->total;
    // The record has other sums of the layer too, if it has many more calls. The first ones of a counter are not added.
    const bool single = op.elements > 0 && op.elements == op.calls && 4 * op.added >= 3 * op.calls;
    // Outside of the optimizer the value may be for a log.
    const bool feeds = op.phase == Phase::optimizer;
    Finding f = finding_at("MPT041", feeds ? Severity::error : Severity::warning, op);
    f.step = counter->first_still;
    f.message =
        place_text(op) + " adds the same number again and again to " +
        (single ? "a single value that stays at " + figure(op.amax) : "values that stay as they are") +
        " in every sampled step from " + std::to_string(f.step.value) +
        " on: what is added is below half of its last place";
    report(c, std::move(f), 1, 0);
}

bool is_about_the_update(const OpRecord& op) { return op.layer == "(clipping)" || op.layer == "(update)"; }

// Whether tensors are multiplied after the scalar, before the optimizer, with results that are off by a good part of
// its error: clipping by hand. A norm that is only for a log has no such op.
bool scales_the_update(const RunModel& m, const OpRecord& scalar, double error) {
    return std::ranges::any_of(m.ops, [&](const OpSum& s) {
        const OpRecord& op = s.total;
        return op.phase == Phase::optimizer && is_about_the_update(op) && op.first > scalar.first &&
               op.elements >= kSmall * op.calls && is_elementwise(op.op) && !is_sum_step(op.op) &&
               relative(op.error_squares, op.twin_squares) >= kShareOfScalar * error;
    });
}

// The first op between backward and the end of the step whose results of one value are far from the twin's.
void judge_computed(Case& c) {
    const double inherited = kOverGradients * error_of_gradients(c.model);
    const OpSum* first = nullptr;
    for (const OpSum& s : c.model.ops) {
        const OpRecord& op = s.total;
        if (!is_scalar(op)) continue;
        const double error = relative(op.error_squares, op.twin_squares);
        if (!(error > far_from_twin(op.dtype) + inherited) || !std::isfinite(error)) continue;
        if (!first || op.first < first->total.first) first = &s;
    }
    if (!first) return;
    const OpRecord& op = first->total;
    const double error = relative(op.error_squares, op.twin_squares);
    // Outside of clipping and the optimizer the value may be for a log.
    const bool feeds =
        op.layer == "(optimizer)" || op.layer == "(clipping)" || scales_the_update(c.model, op, error);
    Finding f = finding_at("MPT041", feeds ? Severity::error : Severity::warning, op);
    f.step = first->first_step;
    f.message = place_text(op) + " gives a single value that is " +
                error_text(error, far_from_twin(op.dtype) + inherited) + "; it reaches " + figure(op.amax) +
                " where the twin reaches " + figure(op.twin_amax);
    report(c, std::move(f), error, far_from_twin(op.dtype) + inherited);
}

}  // namespace

void judge_scalars(Case& c) {
    if (c.model.mode == Mode::watch) return judge_stopped(c);
    if (c.model.mode == Mode::local) c.out.not_run.push_back({"MPT041", "needs a twin, or mode watch"});
    if (has_twin(c.model) && !judge_kept(c) && !judge_counters(c)) judge_computed(c);
}

}  // namespace mp::trace
