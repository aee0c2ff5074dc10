#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "instrument/torch/step_clock.hpp"

namespace mp::twin {

// The step clock of programs that step without an optimizer of torch.optim, whose hooks the shim has: programs without
// Python, and loops in Python that update their parameters themselves. A step is over when a forward op that
// records gradients follows a backward(), and between them parameters were written or gradients cleared, or if it reads
// a new tensor in place of a parameter. If nothing of this happened, another micro-step begins. A step that changes no
// weight counts as skipped.
//
// Safe from any thread. The flags are read on every op without a lock; `mutex_` orders the ends of steps and is taken
// before the lock of StepClock.
class InferredClock {
public:
    InferredClock(Parts& parts, StepClock& clock) : parts_(parts), clock_(clock) {}

    // Whether steps are inferred: until an optimizer of torch.optim is made. In C++ that is never seen.
    bool runs() const noexcept { return runs_.load(std::memory_order_relaxed); }
    void leave_to_optimizers() noexcept { runs_ = false; }

    // `gradient`: of the root. A value other than 1 is the loss scale.
    void begin_backward(const at::Tensor& gradient);
    void forward_op(const Stack& arguments, std::size_t count);
    // `zeroed`: the op sets every element to 0.
    void wrote(const at::Tensor& target, bool zeroed);
    // The program ends its step itself (mptrace_step). From now on only the program ends steps.
    void declared_step(bool skipped, double scale);
    // Called at the end of the program. Ends the current step, if there is one.
    void finish();

private:
    static constexpr double kNoScale = -1;

    bool step_is_over() const;
    void note_leaves(const Stack& arguments, std::size_t count);
    bool replaces_a_parameter(const at::Tensor& leaf) const;
    void end_step();
    bool may_have_moved() const;
    bool was_skipped(bool moved) const;
    double scale() const { return root_gradient_ != 1 ? root_gradient_ : kNoScale; }

    Parts& parts_;
    StepClock& clock_;
    std::mutex mutex_;
    std::atomic<bool> runs_{true};
    std::atomic<bool> declares_steps_{false};
    std::atomic<bool> backward_seen_{false};
    std::atomic<bool> parameter_written_{false};   // since the backward
    std::atomic<bool> gradient_cleared_{false};    // since the backward
    std::atomic<bool> parameter_replaced_{false};  // since the backward
    // The leaves that the step has read, of programs in Python. A weak pointer keeps the address in use.
    struct Leaf {
        c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
        std::vector<std::int64_t> sizes;
    };
    std::unordered_map<const c10::TensorImpl*, Leaf> leaves_;
    std::optional<std::uint64_t> leaves_at_backward_;  // fingerprint of the leaves' values
    double root_gradient_ = 1;
};

}  // namespace mp::twin
