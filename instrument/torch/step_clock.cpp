#include "instrument/torch/step_clock.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "instrument/torch/memory_notes.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

StepClock::StepClock(Parts& parts)
    : parts_(parts), tensors_(parts), budget_(parts.control.options().overhead) {
    begin_step();
}

// Whether the step that begins is measured in full.
bool StepClock::takes_sample(std::int64_t step) {
    if (!budget_.limits()) return tensors_.is_sampled(step);
    const std::int64_t now = monotonic_ns();
    // The first step began before the program did.
    if (step > 1) budget_.add(parts_.ledger.sampled(), now - began_ns_);
    began_ns_ = now;
    return tensors_.is_sampled(step) && budget_.allows(step);
}

void StepClock::tell_samples() {
    if (!budget_.limits() || !parts_.notes.has_file()) return;
    const auto percent = [](double share) {
        std::string text = std::to_string(share * 100);
        return text.substr(0, text.find('.') + 2) + " %";
    };
    parts_.notes.say(trace::NoteKind::sampled,
                     std::to_string(budget_.measured_steps()) + " of " + std::to_string(budget_.steps()) +
                         " steps were measured in full, which took " + percent(budget_.share()) +
                         " of the time; --overhead allows " + percent(parts_.control.options().overhead));
}

void StepClock::begin_step() {
    const trace::Options& options = parts_.control.options();
    const std::int64_t step = parts_.now.number;
    tensors_.begin_step();
    parts_.kept_casts.step_ended();
    parts_.now.ordinal = 0;
    parts_.now.backward_ran = false;
    // Also what another thread has bound since the twin was given up.
    if (options.mode == trace::Mode::step || parts_.control.given_up()) parts_.shadows.clear();
    const bool sampled = takes_sample(step);
    // Twins whose values live on, or that other ranks attend, are not left out.
    parts_.control.begin_step(options.mode == trace::Mode::trajectory ||
                              (options.mode == trace::Mode::local && (sampled || !budget_.limits())) ||
                              (options.mode == trace::Mode::step && options.steps.contains(Step{step})));
    parts_.ledger.begin_step(parts_.control.armed() && sampled);
    parts_.layers.end_step();
}

void StepClock::before_step() {
    const std::lock_guard lock(mutex_);
    if (!parts_.control.armed() || parts_.late.captures()) return;
    parts_.recording.open();
    parts_.now.in_optimizer = true;
    {
        const TwinScope scope;
        parts_.collectives.finish_now();
    }
    tensors_.before_optimizer();
}

void StepClock::after_step(std::int64_t optimizer, bool skipped, double scale) {
    const std::lock_guard lock(mutex_);
    parts_.now.in_optimizer = false;
    if (!parts_.control.armed() || parts_.late.captures()) return;
    // The gradients of a skipped step are measured even if the step measures no other tensors.
    if (skipped) tensors_.measure_gradients(StepTensors::Gradients::without_twin);
    if (optimizer == 0 || parts_.losses.any()) end_step_locked(optimizer, skipped, scale);
}

void StepClock::end_step(StepTensors::Gradients gradients, bool skipped, double scale) {
    const std::lock_guard lock(mutex_);
    if (!parts_.control.armed() || parts_.late.captures()) return;
    parts_.recording.open();
    tensors_.measure_gradients(gradients);
    end_step_locked(0, skipped, scale);
}

void StepClock::finish(bool wait) {
    const std::lock_guard lock(mutex_);
    put_unfinished();
    tell_samples();
    const std::size_t lost =
        parts_.late.finish([this](trace::StepRecord& complete) { write(complete); }, wait);
    if (const std::uint64_t missing = parts_.late.without_room(); missing > 0)
        parts_.notes.say(trace::NoteKind::not_observed,
                         "figures of the device that had no room in their step: " + std::to_string(missing));
    if (lost > 0)
        parts_.faults.measuring("the last " + std::to_string(lost) + " steps",
                                "the device has not finished them");
}

void StepClock::write_late() {
    const std::lock_guard lock(mutex_);
    parts_.late.finish([this](trace::StepRecord& complete) { write(complete); }, true);
}

// The step that did not end belongs to no optimizer.
void StepClock::put_unfinished() {
    trace::StepRecord rest;
    rest.step = Step{parts_.now.number};
    rest.optimizer = trace::kNoOptimizer;
    rest.sampled = parts_.ledger.sampled();
    parts_.losses.record_last();
    rest.losses = parts_.losses.take();
    rest.places = tensors_.take_checkpoints();
    if (parts_.now.backward_ran) rest.tensors = tensors_.lost_gradients();
    parts_.coverage.take(rest);
    parts_.late.end_step(std::move(rest), parts_.ledger.take(),
                         [this](trace::StepRecord& complete) { write(complete); });
}

// A program without steps keeps everything. After the last step of a training only what is not finite is kept: a loss
// check that ends the program comes there, but so do evaluations and exports, which are not the training.
void StepClock::write_unfinished(trace::StepRecord& rest) {
    if (parts_.recording.steps() > 0) {
        std::erase_if(rest.ops, [](const trace::OpRecord& op) { return op.origins == 0; });
        rest.coverage = {};
        rest.dtypes.clear();
    }
    const auto is_lost = [](const trace::LossRecord& l) { return !std::isfinite(l.real); };
    const bool lost = !rest.ops.empty() || !rest.tensors.empty() || std::ranges::any_of(rest.losses, is_lost);
    if (!lost && rest.places.empty()) return;
    if (!lost)
        rest.step = Step{std::max<std::int64_t>(parts_.now.number - 1, 0)};  // checkpoints of the last step
    // In watch mode a forward without gradients is not told from other ops.
    const auto is_of_a_model = [](const trace::OpRecord& op) {
        return op.phase == Phase::forward || (op.origins > 0 && is_low_precision(op.dtype));
    };
    const bool model_ran = std::ranges::any_of(rest.ops, is_of_a_model);
    // A process without a step has a file if a model ran in it, and if it is not the helper of processes that train.
    const bool may_begin = model_ran && !parts_.control.is_child() && parts_.recording.is_first();
    if (!parts_.recording.is_open() && !may_begin) return;
    parts_.recording.step(rest);
}

void StepClock::write(trace::StepRecord& step) {
    if (step.optimizer == trace::kNoOptimizer) return write_unfinished(step);
    tensors_.put_places(step);
    parts_.recording.step(step);
}

void StepClock::begin_backward(const at::Tensor& root, bool accumulates) {
    if (parts_.late.captures()) return;
    parts_.recording.open();
    parts_.now.backward_ran = true;
    parts_.losses.record(root, accumulates);
    if (parts_.control.options().mode < trace::Mode::step || forecast_said_.exchange(true)) return;
    say_memory_forecast(parts_);
}

void StepClock::end_step_locked(std::int64_t optimizer, bool skipped, double scale) {
    {
        const TwinScope scope;
        parts_.collectives.finish_now();
    }
    trace::StepRecord step;
    // The first optimizer steps first in an iteration, so the step of another one belongs to the step before.
    step.step =
        Step{optimizer == 0 ? parts_.now.number.load() : std::max<std::int64_t>(parts_.now.number - 1, 0)};
    step.optimizer = static_cast<std::int32_t>(optimizer);
    step.skipped = skipped;
    step.has_loss_scale = scale >= 0;
    step.loss_scale = scale >= 0 ? scale : 0;
    const std::int64_t now = monotonic_ns();
    step.wall_ns = last_record_ns_ ? now - last_record_ns_ : 0;
    last_record_ns_ = now;
    step.losses = parts_.losses.take();
    step.collectives = parts_.collectives.take();
    tensors_.end_step(step);
    step.sampled = parts_.ledger.sampled();
    parts_.coverage.take(step);
    tensors_.take_places(step);
    parts_.late.end_step(std::move(step), parts_.ledger.take(),
                         [this](trace::StepRecord& complete) { write(complete); });
    if (optimizer == 0) ++parts_.now.number;
    begin_step();
}

}  // namespace mp::twin
