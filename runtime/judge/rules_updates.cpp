// MPT040: updates that are too small for the format they are added to. A parameter that is the rounding of an fp32
// master is judged by the master.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "kernels/base/figures.hpp"
#include "runtime/judge/floors.hpp"
#include "runtime/judge/importance.hpp"
#include "runtime/judge/rules.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::uint64_t kFewest = 64;
// The share of the wanted update from which on nothing is lost. Stochastic rounding moves few elements, each far
// enough. A 16-bit copy of fp32 master weights moves in jumps.
constexpr double kArrives = 0.8;
constexpr double kMasterArrives =
    0.5;  // of a master that a 16-bit copy overwrites in every step, next to nothing
constexpr std::uint64_t kFewestFrozen = 1024;  // elements over samples, where some might have moved by chance
constexpr std::uint64_t kFewestSamples = 3;  // of a parameter of a few elements, such as a learnt temperature
constexpr double kBelowHalfUlp = 0.9;  // share of the unmoved elements from which on rounding is the cause

double share_of(const TensorSum& t) {
    return t.meant_to_move > 0 ? static_cast<double>(t.unmoved) / static_cast<double>(t.meant_to_move) : 0;
}

bool is_measured(const TensorSum& t) { return t.wanted_squares > 0; }
double arrived(const TensorSum& t) { return is_measured(t) ? t.moved_dot / t.wanted_squares : 0; }

bool in_optimizer(const OpRecord& op, DType dtype) {
    return op.phase == Phase::optimizer && op.dtype == dtype && op.layer != "(clipping)";
}

// Whether each update is rounded to nearest when it is added. Stochastic rounding in software and fp32 masters write
// their results with a copy. Hardware that rounds stochastically leaves a larger error in the addition itself.
bool adds_to_nearest(const RunModel& model, DType dtype) {
    bool adds = false;
    for (const OpSum& s : model.ops) {
        const OpRecord& op = s.total;
        if (!in_optimizer(op, dtype)) continue;
        const std::string name = base_name(op.op);
        if (name == "copy" || name == "foreach_copy") return false;
        if (!is_in_place_name(op.op) || op.loc_compared == 0) continue;
        if (introduced_phi(op) > kOneRounding) return false;
        adds = true;
    }
    return adds;
}

// Whether most elements stagnate although nearly all of the energy arrives, because a few elements have large updates.
bool stands_unseen(const RunModel& model, const TensorSum& t, double fail) {
    return share_of(t) > fail && t.samples >= 2 && t.unmoved > 0 &&
           static_cast<double>(t.below_half_ulp) > kBelowHalfUlp * static_cast<double>(t.unmoved) &&
           adds_to_nearest(model, t.last.dtype);
}

// Whether the optimizer adds in 16 bits at all. Masters and stochastic rounding copy.
bool adds_in(const RunModel& model, DType dtype) {
    static constexpr std::string_view kAdds[] = {"add",         "sub",         "addcdiv",
                                                 "foreach_add", "foreach_sub", "foreach_addcdiv"};
    return std::ranges::any_of(model.ops, [&](const OpSum& s) {
        return in_optimizer(s.total, dtype) && is_in_place_name(s.total.op) &&
               std::ranges::find(kAdds, base_name(s.total.op)) != std::end(kAdds);
    });
}

// The rounding of a master in fp32 is judged by MPT028.
bool is_mastered(const TensorSum& t) { return t.mastered > 0 && is_low_precision(t.last.dtype); }

// A program without torch names its weights itself. If it names no master, it says that these are the only copy.
bool names_no_master(const Case& c, const TensorSum& t) {
    const bool master = std::ranges::any_of(
        c.model.tensors, [](const TensorSum& other) { return other.kind == TensorKind::optimizer_state; });
    return is_raw(c.model) && !master && t.kind == TensorKind::parameter &&
           share_of(t) > c.limits.stagnation_fail;
}

bool copies_in(const RunModel& model, DType dtype) {
    return std::ranges::any_of(model.ops, [&](const OpSum& s) {
        const std::string name = base_name(s.total.op);
        return in_optimizer(s.total, dtype) && (name == "copy" || name == "foreach_copy");
    });
}

bool has_gradient(const RunModel& model, const TensorSum& t) {
    return std::ranges::any_of(model.tensors, [&t](const TensorSum& g) {
        return g.kind == TensorKind::gradient && g.name == t.name && g.last.amax > 0;
    });
}

// Whether a parameter of fewer than kFewest elements never moved, although its gradient is not 0. The optimizer adds
// to it in 16 bits, and with a twin each update is below half an ulp. The samples count, because the elements are few.
bool never_moved(const RunModel& model, const TensorSum& t) {
    return t.kind == TensorKind::parameter && t.last.elements < kFewest && t.samples >= kFewestSamples &&
           t.frozen == t.samples && t.unmoved == t.meant_to_move &&
           (!is_measured(t) || t.below_half_ulp == t.unmoved) && adds_in(model, t.last.dtype) &&
           !copies_in(model, t.last.dtype) && has_gradient(model, t);
}

bool is_stuck(const Case& c, const TensorSum& t) {
    const double limit = c.limits.stagnation_warn;
    if (!is_low_precision(t.last.dtype)) return false;
    if (t.meant_to_move < kFewest) return !is_mastered(t) && never_moved(c.model, t);
    if (is_mastered(t)) return is_measured(t) && t.samples >= 2 && arrived(t) < kMasterArrives;
    if (!(share_of(t) > limit)) return false;
    if (is_measured(t)) return arrived(t) < kArrives || stands_unseen(c.model, t, c.limits.stagnation_fail);
    // Without a twin, one sample may be a warm-up step with a learning rate of 0, and what moves little may be rounded
    // stochastically.
    return t.samples >= 2 && ((t.frozen == t.samples && t.meant_to_move >= kFewestFrozen) ||
                              adds_in(c.model, t.last.dtype) || names_no_master(c, t));
}

// Averages of weights have no gradient. If no gradient was recorded, they cannot be distinguished from weights.
bool is_trained(const RunModel& model, const TensorSum& t) {
    bool any = false;
    for (const TensorSum& g : model.tensors) {
        if (g.kind != TensorKind::gradient) continue;
        if (g.name == t.name) return true;
        any = true;
    }
    return !any;
}

Severity severity_of(const TensorSum& t, const Limits& limits) {
    if (is_mastered(t)) return Severity::error;
    if (!(share_of(t) > limits.stagnation_fail)) return Severity::warning;
    // Without a twin, stochastic rounding cannot be ruled out as long as some elements move.
    return is_measured(t) || t.frozen == t.samples ? Severity::error : Severity::warning;
}

std::string layer_of(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(0, dot);
}

std::string half_ulp_text(const TensorSum& t) {
    if (t.unmoved == 0 || t.below_half_ulp == 0) return {};
    return ", " + percent(static_cast<double>(t.below_half_ulp) / static_cast<double>(t.unmoved)) +
           " of these because the update is below half an ulp";
}

bool writes_in_place(std::string_view op) { return is_in_place_name(op) || op.find("fused_") != op.npos; }

// The op that writes such tensors: the last of its kind in the optimizer. For a parameter that is the update.
std::string update_op(const RunModel& model, const TensorSum& t) {
    static constexpr std::string_view kUpdates[] = {
        "addcdiv",    "add",       "sub",  "foreach_addcdiv", "foreach_add", "foreach_sub", "fused_adamw",
        "fused_adam", "fused_sgd", "lerp", "foreach_lerp"};
    static constexpr std::string_view kAverages[] = {
        "lerp", "addcmul", "mul", "add", "foreach_lerp", "foreach_addcmul", "foreach_mul", "foreach_add"};
    const auto names = t.kind == TensorKind::parameter ? std::span<const std::string_view>(kUpdates)
                                                       : std::span<const std::string_view>(kAverages);
    std::pair<std::ptrdiff_t, const OpRecord*> best{std::ssize(names), nullptr};
    for (const OpSum& s : model.ops) {
        if (!in_optimizer(s.total, t.last.dtype) || !writes_in_place(s.total.op)) continue;
        const std::ptrdiff_t at = std::ranges::find(names, base_name(s.total.op)) - names.begin();
        if (at < best.first) best = {at, &s.total};
    }
    return best.second ? best.second->op : std::string();
}

struct Kind {
    TensorKind kind = TensorKind::parameter;
    bool trained = true;      // for parameters only
    std::string_view noun;    // for the worst tensor
    std::string_view others;  // for the others
    std::string_view advice;
    importance::Weight weight;  // among the findings of this rule
};

using Stuck = std::vector<const TensorSum*>;

// A program makes all of its masters anew in every step, or none. A part of them whose updates do not arrive follows
// noise: the bias of a key has no gradient, because softmax ignores it, and a run may take another way than its twin.
bool are_remade(const RunModel& model, const Stuck& stuck) {
    const auto all = std::ranges::count_if(
        model.tensors, [](const TensorSum& t) { return t.kind == TensorKind::parameter && is_mastered(t); });
    const auto lost = std::ranges::count_if(stuck, [](const TensorSum* t) { return is_mastered(*t); });
    return 10 * lost >= 9 * all;
}

Stuck stuck_of(const Case& c, const Kind& kind) {
    Stuck stuck;
    for (const TensorSum& t : c.model.tensors) {
        if (t.kind != kind.kind || !is_stuck(c, t)) continue;
        if (t.kind != TensorKind::parameter || is_trained(c.model, t) == kind.trained) stuck.push_back(&t);
    }
    if (!are_remade(c.model, stuck)) std::erase_if(stuck, [](const TensorSum* t) { return is_mastered(*t); });
    return stuck;
}

std::string stagnation_text(const TensorSum& t) {
    std::string out =
        percent(share_of(t)) + " of the elements that were meant to move stay as they are" + half_ulp_text(t);
    const bool lost = is_measured(t) && arrived(t) < kArrives;
    if (lost) out += "; " + percent(std::max(arrived(t), 0.0)) + " of the wanted update arrives";
    if (is_measured(t) && !lost) out += "; the few others take nearly all of the wanted update";
    return out;
}

Finding stagnation(const Case& c, const Kind& kind, const TensorSum& worst) {
    Finding f = finding("MPT040", severity_of(worst, c.limits));
    f.layer = layer_of(worst.name);
    f.op = update_op(c.model, worst);
    f.phase = Phase::optimizer;
    f.step = worst.first_stagnant;
    f.value = share_of(worst);
    f.limit = f.severity == Severity::error ? c.limits.stagnation_fail : c.limits.stagnation_warn;
    f.unit = "share";
    const bool lost = is_measured(worst) && arrived(worst) < kArrives;
    f.importance = kind.weight(lost ? std::clamp(1 - arrived(worst), 0.0, 1.0) : share_of(worst));
    f.advice = kind.advice;
    return f;
}

// The worst tensor has the largest share, then the most elements.
const TensorSum& worst_of(const Stuck& stuck) {
    return **std::ranges::max_element(
        stuck, {}, [](const TensorSum* t) { return std::pair(share_of(*t), t->meant_to_move); });
}

void judge_kind(Case& c, const Kind& kind) {
    const Stuck stuck = stuck_of(c, kind);
    if (stuck.empty()) return;
    const TensorSum& worst = worst_of(stuck);
    Finding f = stagnation(c, kind, worst);
    f.message = std::string(kind.noun) + " " + shown(worst.name) + " (" +
                std::string(name_of(worst.last.dtype)) + "): " + stagnation_text(worst);
    if (stuck.size() > 1)
        f.message += "; " + counted(stuck.size() - 1, std::string(kind.others)) + " as well";
    c.out.findings.push_back(std::move(f));
}

// The op by which weight decay multiplies 16-bit weights, if nearly all of them stay as they are. Only parameters are
// counted under it. `averages`: untrained ones stagnate, so that a product outside of the optimizer may be theirs.
const OpSum* lost_decay(const RunModel& model, bool averages) {
    for (const OpSum& s : model.ops) {
        const std::string name = base_name(s.total.op);
        if (name != "mul" && name != "foreach_mul") continue;
        if (averages && s.total.layer == "(update)") continue;
        if (in_optimizer(s.total, s.total.dtype) && leaves_what_it_updates(s.total)) return &s;
    }
    return nullptr;
}

double share(std::uint64_t part, std::uint64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

// Whether memory that is updated from step to step stays as it is, in a run without a twin.
bool stands(const OpRecord& op) { return op.updated >= kFewestFrozen && share(op.stood, op.updated) > kLeft; }

// An average of weights that is no parameter of a model that ran, such as the clones of an EMA: it has no name, and
// only the op that updates it is known.
void judge_unnamed_averages(Case& c) {
    for (const OpSum& s : c.model.ops) {
        const OpRecord& op = s.total;
        const std::string name = base_name(op.op);
        const bool adds = name == "add" || name == "lerp" || name == "foreach_add" || name == "foreach_lerp";
        if (!adds || op.phase != Phase::optimizer || op.layer != "(update)") continue;
        const bool beside_twin = op.compared > 0 && op.added >= kFewestFrozen && leaves_what_it_updates(op);
        if (!beside_twin && !stands(op)) continue;
        Finding f = finding_at("MPT040", beside_twin ? Severity::error : Severity::warning, op);
        f.step = s.first_step;
        f.value = beside_twin ? share(op.absorbed, op.added) : share(op.stood, op.updated);
        f.limit = kLeft;
        f.unit = "share";
        f.importance = importance::kStagnantAverages(f.value);
        f.message = "an average outside of the optimizer is updated in " + std::string(name_of(op.dtype)) +
                    ": " + shown(op.op) + " leaves " + percent(f.value) +
                    " of the elements as they are that " +
                    (beside_twin ? "the fp32 twin's moves" : "an exact sum would change");
        f.advice = "keep the average in fp32: its updates are below half an ulp of 16 bits";
        c.out.findings.push_back(std::move(f));
        return;
    }
}

std::string decay_text(const OpRecord& op) {
    return "weight decay leaves " +
           percent(static_cast<double>(op.absorbed) / static_cast<double>(op.added)) +
           " of the weights as they are";
}

// "12 of 14 parameters"
std::string share_text(const RunModel& model, const Stuck& stuck) {
    const auto all = std::ranges::count_if(model.tensors, [](const TensorSum& t) {
        return t.kind == TensorKind::parameter && is_low_precision(t.last.dtype) && t.samples > 0;
    });
    return std::to_string(stuck.size()) + " of " + counted(static_cast<std::uint64_t>(all), "parameter");
}

// All that a 16-bit update loses in one finding: stagnant averages, stagnant state and lost weight decay have the same
// cause and the same cure. The first of the consequences are averages of weights.
bool judge_weights(Case& c, const Kind& kind, std::span<const Kind> consequences) {
    const Stuck stuck = stuck_of(c, kind);
    const bool averages = !stuck_of(c, consequences.front()).empty();
    const OpSum* const decay = lost_decay(c.model, averages);
    if (stuck.empty() && !decay) return false;
    if (stuck.empty()) {
        Finding f = finding_at("MPT040", Severity::error, decay->total);
        f.step = decay->first_step;
        f.value = static_cast<double>(decay->total.absorbed) / static_cast<double>(decay->total.added);
        f.limit = kLeft;
        f.unit = "share";
        f.importance = kind.weight(f.value);
        f.message = "weights are updated in " + std::string(name_of(decay->total.dtype)) +
                    " without an fp32 master: " + decay_text(decay->total);
        f.advice = kind.advice;
        c.out.findings.push_back(std::move(f));
        return false;
    }
    const TensorSum& worst = worst_of(stuck);
    const std::string dtype(name_of(worst.last.dtype));
    Finding f = stagnation(c, kind, worst);
    f.message = is_mastered(worst)
                    ? "the fp32 copies of the weights are made from the " + dtype + " weights in every step: "
                    : "weights are updated in " + dtype + " without an fp32 master: ";
    f.message +=
        "updates of " + share_text(c.model, stuck) + " are lost; in " + shown(worst.name) + " " +
        (is_mastered(worst) ? percent(std::max(arrived(worst), 0.0)) + " of the wanted update arrives"
                            : stagnation_text(worst));
    const auto frozen =
        std::ranges::count_if(stuck, [](const TensorSum* t) { return t->frozen == t->samples; });
    if (frozen > 0)
        f.message += "; " + counted(static_cast<std::uint64_t>(frozen), "parameter") + " never moved";
    if (decay) f.message += "; " + decay_text(decay->total);
    for (const Kind& also : consequences)
        if (const Stuck others = stuck_of(c, also); !others.empty())
            f.message += "; " + counted(others.size(), std::string(also.noun)) + " as well";
    c.out.findings.push_back(std::move(f));
    return true;
}

}  // namespace

void judge_updates(Case& c) {
    static constexpr Kind kWeights = {TensorKind::parameter,
                                      true,
                                      "",
                                      "",
                                      "keep master weights in fp32 from step to step: autocast instead of a "
                                      "16-bit model, or an optimizer with fp32 "
                                      "copies that rounds them into the weights; after resume too",
                                      importance::kStagnantWeights};
    static constexpr Kind kConsequences[] = {
        {TensorKind::parameter, false, "parameter without a gradient", "other such parameter",
         "keep the average of weights in fp32: its updates are below half an ulp of 16 bits",
         importance::kStagnantAverages},
        {TensorKind::optimizer_state, true, "optimizer state", "other state",
         "keep the optimizer's state in fp32: a decaying average moves by less than half an ulp of 16 bits",
         importance::kStagnantState}};
    static constexpr Kind kBuffers = {
        TensorKind::buffer,
        true,
        "buffer",
        "other buffer",
        "keep running averages in fp32: their updates are below half an ulp of 16 bits",
        importance::kStagnantBuffers};
    const auto before = c.out.findings.size();
    if (!judge_weights(c, kWeights, kConsequences))
        for (const Kind& kind : kConsequences) judge_kind(c, kind);
    judge_kind(c, kBuffers);
    if (c.out.findings.size() == before) judge_unnamed_averages(c);
}

}  // namespace mp::trace
