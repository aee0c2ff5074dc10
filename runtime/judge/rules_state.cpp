// MPT025: an optimizer's state whose small values became 0 where its fp32 twin has a number. Adam divides by the root
// of the second moment: where that is 0 and the first moment is not, the update is the first moment divided by epsilon.
// fp16 has no number below 6e-8, which is the square of a gradient of 2.4e-4. The step with most of such zeros is
// judged: one update that was divided by epsilon stays in the weights, and a running average grows out of the zeros.

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;  // elements
constexpr double kFlushed = 0.01;  // share of the elements, above that of the other state and the gradients
constexpr double kParameterIsLost = 1;   // off by its own size: a few elements explain that
constexpr double kParameterIsFar = 0.1;  // relative error of the parameter: the update was wrong

std::string owner_of(const std::string& name) {
    return name.substr(0, std::min(name.rfind('.'), name.size()));
}

bool is_compared_state(const TensorSum& t) {
    return t.kind == TensorKind::optimizer_state && t.last.compared >= kFewest;
}

// The states of a parameter come from the same gradients, so one of them has zeros where another has none, and where
// the gradients have none, only if its format cannot hold the values. The gradients are asked too, because a state may
// hold weights: those are not 0 where a ReLU of the run has no gradient and the twin's has.
struct States {
    const TensorSum* worst = nullptr;
    double least = 1;  // share of zeros among them, each in its worst step
    double gradient = 0;
    int count = 0;
};

std::map<std::string, States> states_of(const RunModel& m) {
    std::map<std::string, States> out;
    for (const TensorSum& t : m.tensors) {
        if (!is_compared_state(t)) continue;
        States& s = out[owner_of(t.name)];
        if (!s.worst || t.most_flushed > s.worst->most_flushed) s.worst = &t;
        s.least = std::min(s.least, t.most_flushed);
        ++s.count;
    }
    for (const TensorSum& t : m.tensors)
        if (const auto it = out.find(t.name); it != out.end() && t.kind == TensorKind::gradient)
            it->second.gradient = std::max(it->second.gradient, t.most_flushed);
    return out;
}

// The format that flushes: that of the state, or of an op of the optimizer that stores it for a while.
std::string format_of_flush(const RunModel& m, const TensorSum& state) {
    if (is_low_precision(state.last.dtype)) return std::string(name_of(state.last.dtype));
    for (const OpSum& s : m.ops)
        if (s.total.phase == Phase::optimizer && is_low_precision(s.total.dtype) && s.total.flushed_abs > 0)
            return std::string(name_of(s.total.dtype));
    return "a narrow format";
}

}  // namespace

std::optional<FlushedState> flushed_state(const RunModel& m) {
    if (!has_twin(m)) return std::nullopt;
    const auto states = states_of(m);
    FlushedState out;
    for (const TensorSum& p : m.tensors) {
        if (p.kind != TensorKind::parameter || p.last.compared == 0) continue;
        const auto known = states.find(p.name);
        if (known == states.end() || known->second.count < 2) continue;
        const States& s = known->second;
        const double far = relative(p.last.error_squares, p.last.twin_squares);
        const double share = s.worst->most_flushed - std::max(s.least, s.gradient);
        const double few = static_cast<double>(kFewest) / static_cast<double>(s.worst->last.compared);
        const double limit = far > kParameterIsLost ? std::min(few, kFlushed) : kFlushed;
        if (share < limit || !(far > kParameterIsFar)) continue;
        out.others += out.state != nullptr;
        if (out.state && !(far > out.parameter_error)) continue;
        out.state = s.worst;
        out.parameter_error = far;
    }
    if (!out.state) return std::nullopt;
    out.format = format_of_flush(m, *out.state);
    return out;
}

void judge_state(Case& c) {
    const auto flushed = flushed_state(c.model);
    if (!flushed) return;
    const TensorSum& worst = *flushed->state;
    const double error = flushed->parameter_error;
    Finding f = finding("MPT025", Severity::error);
    f.layer = owner_of(owner_of(worst.name));
    f.phase = Phase::optimizer;
    f.step = worst.most_flushed_at.step;
    f.value = worst.most_flushed;
    f.limit = std::min(f.value, kFlushed);
    f.unit = "share";
    f.importance = importance::kFlushedState();
    f.message = "optimizer state " + shown(worst.name) + " loses its small values in " + flushed->format +
                ": " + percent(f.value) + " of them are 0 in step " + std::to_string(f.step.value) +
                " where the fp32 twin has a number, and the parameter is off by " +
                (error < 1 ? percent(error) : figure(error) + " times its size");
    if (flushed->others > 0)
        f.message += "; the same holds for " + counted(flushed->others, "other parameter");
    f.advice = "keep the second moment in fp32 or bf16: its values are squares of gradients";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
