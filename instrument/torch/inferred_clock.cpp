#include "instrument/torch/inferred_clock.hpp"

#include <algorithm>
#include <utility>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {

void InferredClock::begin_backward(const at::Tensor& gradient) {
    const std::lock_guard lock(mutex_);
    if (!backward_seen_) leaves_at_backward_ = parts_.parameters.leaves_fingerprint();
    backward_seen_ = true;
    // A device is not waited for.
    if (gradient.defined() && gradient.numel() == 1 && gradient.device().is_cpu())
        root_gradient_ = scalar_of(gradient);
}

bool InferredClock::step_is_over() const {
    return backward_seen_ && (parameter_written_ || gradient_cleared_ || parameter_replaced_) &&
           !declares_steps_;
}

// `w = w - rate * w.grad` binds a new leaf to the name of a parameter. The old one is gone or still has its gradient.
bool InferredClock::replaces_a_parameter(const at::Tensor& leaf) const {
    return backward_seen_ && !leaf.grad().defined() &&
           std::any_of(leaves_.begin(), leaves_.end(), [&](const auto& known) {
               if (leaf.sizes() != at::IntArrayRef(known.second.sizes)) return false;
               auto impl = known.second.tensor.lock();
               return !impl || at::Tensor(std::move(impl)).grad().defined();
           });
}

void InferredClock::note_leaves(const Stack& arguments, std::size_t count) {
    std::unique_lock lock(mutex_, std::defer_lock);
    for (std::size_t i = arguments.size() - count; i < arguments.size(); ++i)
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (!t.requires_grad() || !t.is_leaf()) return;
            if (!lock.owns_lock()) lock.lock();  // most ops read no leaf
            if (leaves_.count(t.unsafeGetTensorImpl())) return;
            if (replaces_a_parameter(t)) parameter_replaced_ = true;
            leaves_.emplace(
                t.unsafeGetTensorImpl(),
                Leaf{c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr()), t.sizes().vec()});
        });
}

void InferredClock::forward_op(const Stack& arguments, std::size_t count) {
    if (parts_.control.has_python() && !declares_steps_) note_leaves(arguments, count);
    if (step_is_over()) end_step();
    // In Python an optimizer and the names of the parameters may still come, so only gradients show what is trained.
    if (parts_.control.has_python()) return;
    for (std::size_t i = arguments.size() - count; i < arguments.size(); ++i)
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (t.requires_grad() && t.is_leaf()) parts_.parameters.add_leaf(t);
        });
}

void InferredClock::end_step() {
    const std::lock_guard lock(mutex_);
    if (!step_is_over()) return;
    const bool moved = (parameter_written_ && may_have_moved()) || parameter_replaced_;
    clock_.end_step(StepTensors::Gradients::of_twin, was_skipped(moved), scale());
    backward_seen_ = parameter_written_ = gradient_cleared_ = parameter_replaced_ = false;
    root_gradient_ = 1;
    leaves_.clear();
}

// Weights on a device are taken to have moved.
bool InferredClock::may_have_moved() const {
    const std::optional<std::uint64_t> now = parts_.parameters.leaves_fingerprint();
    return !now || now != leaves_at_backward_;
}

// A Python loop may bind new tensors to the names of its parameters, which moves none of the known ones. So there only
// a loss scale shows that an update was held back on purpose.
bool InferredClock::was_skipped(bool moved) const {
    return !moved && (scale() != kNoScale || !parts_.control.has_python());
}

void InferredClock::wrote(const at::Tensor& target, bool zeroed) {
    if (!backward_seen_ || !target.has_storage()) return;
    const c10::StorageImpl* storage = target.storage().unsafeGetStorageImpl();
    if (parts_.parameters.is_leaf_storage(storage)) parameter_written_ = true;
    if (zeroed && !gradient_cleared_ && parts_.parameters.is_gradient_storage(storage))
        gradient_cleared_ = true;
}

void InferredClock::declared_step(bool skipped, double scale) {
    const std::lock_guard lock(mutex_);
    declares_steps_ = true;
    clock_.end_step(StepTensors::Gradients::of_step, skipped, scale);
    backward_seen_ = parameter_written_ = gradient_cleared_ = false;
}

void InferredClock::finish() {
    const std::lock_guard lock(mutex_);
    if (!backward_seen_ || declares_steps_ || !parts_.losses.any()) return;
    parts_.losses.record_last();
    clock_.end_step(StepTensors::Gradients::none, was_skipped(may_have_moved()), scale());
}

}  // namespace mp::twin
