// MPT027: parameters that an optimizer moves much farther, or much less far, than it moves their fp32 twins, although
// the gradients agree. The length of an update is a measure that noise leaves alone: a rounding may turn the sign of a
// small gradient, and with it half of Adam's update of a sound run, but not how far the elements move. So the floor is
// the error of the same gradients in the same steps, which makes an update longer by its square.

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "kernels/base/figures.hpp"
#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;          // elements
constexpr double kGradientsAgree = 0.25;       // relative error; beyond it the gradients are to blame
constexpr double kMost = 1e9;                  // nothing moved
constexpr double kOneFar = 2, kAllFar = 1.25;  // times as long, or as short, as the twin's
constexpr double kLeastTimes = 0.01;           // that a message has in figures

// Sums over sampled steps and parameters.
struct Updates {
    double real = 0, twin = 0, gradient_error = 0, gradient = 0;

    void add(const TensorSum& parameter, const TensorSum& of_gradient) {
        real += parameter.change_squares;
        twin += parameter.twin_change_squares;
        gradient_error += of_gradient.sampled_error_squares;
        gradient += of_gradient.sampled_twin_squares;
    }
    bool gradients_agree() const {
        return gradient > 0 && relative(gradient_error, gradient) <= kGradientsAgree;
    }
    double times() const { return std::sqrt(real / twin); }
    double far() const { return std::max(times(), 1 / times()); }
};

struct Worst {
    const TensorSum* parameter = nullptr;
    Updates its, all;
    std::uint64_t others = 0;
};

Worst worst_of(const RunModel& m) {
    std::map<std::string_view, const TensorSum*> gradients;
    for (const TensorSum& t : m.tensors)
        if (t.kind == TensorKind::gradient) gradients.emplace(t.name, &t);
    Worst worst;
    for (const TensorSum& t : m.tensors) {
        const auto gradient = gradients.find(t.name);
        if (t.kind != TensorKind::parameter || gradient == gradients.end() || t.last.compared < kFewest ||
            !(t.twin_change_squares > 0) || !std::isfinite(t.change_squares) || t.mastered > 0)
            continue;  // the rounding of a master moves by whole ulps
        Updates its;
        its.add(t, *gradient->second);
        if (!its.gradients_agree()) continue;
        worst.all.add(t, *gradient->second);
        if (its.far() < kOneFar) continue;
        worst.others += worst.parameter != nullptr;
        if (!worst.parameter || its.far() > worst.its.far()) worst.parameter = &t, worst.its = its;
    }
    return worst;
}

std::string_view layer_of(std::string_view parameter) {
    return parameter.substr(0, parameter.rfind('.') == parameter.npos ? 0 : parameter.rfind('.'));
}

// The first op between backward and the end of the step that stores its results in few bits.
const OpSum* cause_of(const RunModel& m, std::string_view layer) {
    const OpSum* found = nullptr;
    for (const OpSum& s : m.ops) {
        const OpRecord& op = s.total;
        if (op.phase != Phase::optimizer || !is_low_precision(op.dtype)) continue;
        if (op.layer != layer && !op.layer.starts_with('(')) continue;
        if (!found || op.first < found->total.first) found = &s;
    }
    return found;
}

bool explains_updates(const Finding& f) {
    return f.severity == Severity::error && (f.phase == Phase::optimizer || f.phase == Phase::unknown);
}

}  // namespace

void judge_parameters(Case& c) {
    if (std::ranges::any_of(c.out.findings, explains_updates)) return;
    const Worst worst = worst_of(c.model);
    const bool all = worst.all.twin > 0 && worst.all.far() >= kAllFar;
    if (!all && !worst.parameter) return;
    const Updates& shown_updates = worst.parameter ? worst.its : worst.all;
    const std::string_view layer = worst.parameter ? layer_of(worst.parameter->name) : "(optimizer)";
    const OpSum* const cause = cause_of(c.model, layer);
    if (!cause && !(shown_updates.far() >= kOneFar)) return;
    const Severity severity = cause ? Severity::error : Severity::warning;
    Finding f = cause ? finding_at("MPT027", severity, cause->total) : finding("MPT027", severity);
    f.layer = layer;
    f.phase = Phase::optimizer;
    f.step = worst.parameter ? worst.parameter->first_sample : Step{};
    f.value = std::min(shown_updates.far(), kMost);
    f.limit = worst.parameter ? kOneFar : kAllFar;
    f.unit = "times";
    f.importance = importance::kUpdateDeparture();
    f.message =
        "the optimizer moves " +
        (worst.parameter ? shown(worst.parameter->name) : std::string("the parameters")) + " " +
        (shown_updates.times() < kLeastTimes ? "less than " + figure(kLeastTimes)
                                             : figure(std::round(100 * shown_updates.times()) / 100)) +
        " times as far as in fp32, although the gradients agree (error " +
        percent(relative(shown_updates.gradient_error, shown_updates.gradient)) + ")";
    if (worst.others > 0) f.message += "; the same holds for " + counted(worst.others, "other parameter");
    if (cause) f.message += "; " + place_text(cause->total) + " is its first op in few bits";
    f.advice = cause ? "keep the optimizer's state and its arithmetic in fp32"
                     : "look at what the program computes between backward() and step()";
    c.out.findings.push_back(std::move(f));
}

}  // namespace mp::trace
