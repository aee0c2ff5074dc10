#include "instrument/torch/step_tensors.hpp"

#include <iterator>
#include <utility>

#include "instrument/torch/test_hooks.hpp"

namespace mp::twin {
namespace {

template <typename Record>
void append(std::vector<Record>& to, std::vector<Record> more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

bool StepTensors::is_sampled(std::int64_t step) const {
    const trace::Options& options = parts_.control.options();
    if (rule_disabled("measure") || !options.steps.contains(Step{step})) return false;
    if (options.mode == trace::Mode::local || options.mode == trace::Mode::step) return true;
    return step % 32 == 0 || (step < 32 && (step & (step - 1)) == 0);
}

// Whether tensors of this step have twins to compare with.
bool StepTensors::has_twin() const {
    const Control& control = parts_.control;
    return control.twin_active() && !control.local() &&
           control.options().steps.contains(Step{parts_.now.number});
}

bool StepTensors::measures() const {
    return !rule_disabled("measure") && (has_twin() || (!parts_.control.local() && parts_.ledger.sampled()));
}

void StepTensors::before_optimizer() {
    if (!measures()) return;
    gradients_ = parts_.parameters.measure(shadows(), trace::TensorKind::gradient, false);
    if (parts_.ledger.sampled() && !parts_.control.given_up()) parts_.parameters.keep_values(shadows());
}

void StepTensors::measure_gradients(Gradients which) {
    if (!gradients_.empty()) return;
    const bool wanted = (which == Gradients::of_twin && has_twin()) ||
                        (which == Gradients::of_step && measures()) ||
                        (which == Gradients::without_twin && !parts_.control.local());
    if (!wanted) return;
    gradients_ = parts_.parameters.measure(which == Gradients::without_twin ? nullptr : shadows(),
                                           trace::TensorKind::gradient, false);
}

std::vector<trace::TensorRecord> StepTensors::lost_gradients() {
    if (!gradients_.empty()) return {};
    auto all =
        parts_.parameters.measure(has_twin() ? shadows() : nullptr, trace::TensorKind::gradient, false);
    std::erase_if(all, [](const trace::TensorRecord& g) { return g.nonfinite_real == 0; });
    return all;
}

// Parameters in every step, their state and buffers in sampled ones.
void StepTensors::end_step(trace::StepRecord& step) {
    using Kind = trace::TensorKind;
    if (measures()) {
        const bool sampled = parts_.ledger.sampled();
        Parameters& parameters = parts_.parameters;
        append(step.tensors, parameters.measure(shadows(), Kind::parameter, sampled));
        if (sampled) append(step.tensors, parameters.measure(shadows(), Kind::optimizer_state, sampled));
        append(step.tensors, parameters.measure(shadows(), Kind::buffer, sampled));
        parameters.forget_values();
        if (sampled && has_twin()) parameters.keep_untrained(parts_.shadows);
        if (has_twin() && parts_.now.number == 0 && parts_.control.options().twin_noise)
            parameters.disturb(parts_.shadows);
    }
    append(step.tensors, std::exchange(gradients_, {}));
}

void StepTensors::place(trace::DTypePlace place) {
    const std::lock_guard lock(mutex_);
    checkpoints_.push_back(std::move(place));
}

std::vector<trace::DTypePlace> StepTensors::take_checkpoints() {
    const std::lock_guard lock(mutex_);
    return std::exchange(checkpoints_, {});
}

void StepTensors::take_places(trace::StepRecord& step) {
    std::vector<trace::DTypePlace> checkpoints = take_checkpoints();
    if (!step.sampled && checkpoints.empty()) return;
    step.places = parts_.parameters.places();
    append(step.places, std::move(checkpoints));
}

void StepTensors::put_places(trace::StepRecord& step) {
    if (step.sampled || !step.places.empty()) places_.put(step);
}

}  // namespace mp::twin
