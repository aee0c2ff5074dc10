#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "instrument/torch/control.hpp"
#include "instrument/torch/late.hpp"
#include "instrument/torch/shadow_map.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// Finds the losses of a step: the roots of its backward passes. A candidate is a scalar result that was made while
// gradients were recorded; it is a root if its node is the first node of a backward. Safe from any thread. Tensors are
// held weakly, except for a declared loss and the memory of the last candidate.
class Losses {
public:
    Losses(const Control& control, ShadowMap& shadows, Late& late)
        : control_(control), shadows_(shadows), late_(late) {}

    void candidate(const at::Tensor& scalar);
    // GradScaler made `root` from `loss`. The loss is recorded instead of the root.
    void scaled(const at::Tensor& root, const at::Tensor& loss);
    // The program declares its loss (mptrace_loss). It is recorded instead of the root of the next backward().
    void declared(const at::Tensor& loss);

    // The candidate that made this autograd node; nothing if none did.
    std::optional<at::Tensor> made_by(std::int64_t sequence);
    // Records the loss of a backward pass that starts at `root`. One that gives its gradients back
    // (torch.autograd.grad) counts only in a step without one that accumulates them: a gradient penalty, the inner
    // steps of meta-learning or a derivative with respect to the inputs are not losses.
    void record(const at::Tensor& root, bool accumulates);
    // The program ends: records the last candidate, if no backward pass has begun since it was made. A program that
    // checks its loss and leaves has no other loss in its last step.
    void record_last();

    bool any() const;
    // Returns the losses of the step and clears them.
    std::vector<trace::LossRecord> take();

private:
    using Weak = c10::weak_intrusive_ptr<c10::TensorImpl>;
    struct Scaled {
        Weak root, loss;
    };

    // The memory of a scalar. Its tensor would keep the graph of its forward alive.
    struct Scalar {
        c10::Storage memory;
        std::int64_t offset = 0;
        at::ScalarType type = at::kFloat;
    };

    struct Found {
        trace::LossRecord record;
        bool accumulates = true;
        bool late = false;  // a device has the values below
        Late::Value real{}, twin{};
    };

    at::Tensor loss_of(const at::Tensor& root);
    void add(const at::Tensor& loss, bool accumulates);

    const Control& control_;
    ShadowMap& shadows_;
    Late& late_;
    mutable std::mutex mutex_;
    std::vector<Weak> candidates_;
    std::size_t next_candidate_ = 0;  // the index to replace next
    std::vector<Scaled> scaled_;
    std::optional<Scalar> last_;  // candidate since the last backward
    at::Tensor declared_;
    std::vector<Found> found_;
};

}  // namespace mp::twin
