#include "instrument/torch/losses.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::size_t kCandidates = 64;  // scalar results remembered until a backward() starts at one

c10::weak_intrusive_ptr<c10::TensorImpl> weak(const at::Tensor& t) {
    return c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr());
}

// The number of the node that made a tensor. Does not make a view rebuild its node.
std::int64_t sequence_of(const at::Tensor& t) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(t);
    return meta && meta->grad_fn_ ? static_cast<std::int64_t>(meta->grad_fn_->sequence_nr()) : -1;
}

}  // namespace

void Losses::candidate(const at::Tensor& scalar) {
    const std::lock_guard lock(mutex_);
    if (candidates_.size() < kCandidates)
        candidates_.push_back(weak(scalar));
    else
        candidates_[next_candidate_] = weak(scalar);
    next_candidate_ = (next_candidate_ + 1) % kCandidates;
    if (has_plain_memory(scalar))
        last_ = Scalar{scalar.storage(), scalar.storage_offset(), scalar.scalar_type()};
}

void Losses::scaled(const at::Tensor& root, const at::Tensor& loss) {
    const std::lock_guard lock(mutex_);
    scaled_.push_back({weak(root), weak(loss)});
}

void Losses::declared(const at::Tensor& loss) {
    const std::lock_guard lock(mutex_);
    declared_ = loss.detach();
}

std::optional<at::Tensor> Losses::made_by(std::int64_t sequence) {
    const std::lock_guard lock(mutex_);
    for (Weak& candidate : candidates_) {
        auto impl = candidate.lock();
        if (!impl) continue;
        at::Tensor root(std::move(impl));
        if (sequence_of(root) == sequence) return root;
    }
    return std::nullopt;
}

at::Tensor Losses::loss_of(const at::Tensor& root) {
    const std::lock_guard lock(mutex_);
    at::Tensor loss = root;
    for (const Scaled& scaled : scaled_) {
        const auto known = scaled.root.lock();
        if (known.get() != root.unsafeGetTensorImpl()) continue;
        if (auto input = scaled.loss.lock()) loss = at::Tensor(std::move(input));
    }
    scaled_.clear();
    last_.reset();
    return declared_.defined() ? std::exchange(declared_, {}) : loss;
}

void Losses::record(const at::Tensor& root) {
    const TwinScope scope;
    add(loss_of(root));
}

void Losses::record_last() {
    const TwinScope scope;
    std::optional<Scalar> last;
    {
        const std::lock_guard lock(mutex_);
        last = std::exchange(last_, std::nullopt);
    }
    if (!last) return;
    const auto options = at::TensorOptions().dtype(last->type).device(last->memory.device());
    add(at::empty({0}, options).set_(last->memory, last->offset, {}, {}));
}

void Losses::add(const at::Tensor& loss) {
    trace::LossRecord record;
    record.dtype = dtype_of(loss.scalar_type());
    // A loss that was computed outside the dispatcher has no twin.
    record.has_twin = control_.twin_active() && !control_.local() && has_plain_memory(loss) &&
                      shadows_.find(loss).shadow.defined();
    const at::Tensor twin = record.has_twin ? shadows_.value(loss) : at::Tensor();
    const bool late = late_.serves(loss);
    if (!late) {
        record.real = scalar_of(loss);
        if (record.has_twin) record.twin = scalar_of(twin);
    }
    const std::lock_guard lock(mutex_);
    const std::size_t index = records_.size();
    record.micro_step = static_cast<std::int32_t>(index);
    records_.push_back(record);
    if (!late) return;
    // The loss of a device is not waited for.
    late_.then([index, real = late_.value(loss),
                twin = record.has_twin ? late_.value(twin) : Late::Value()](LateStep& step) {
        trace::LossRecord& known = step.record.losses[index];
        if (real.known()) known.real = real.get();
        if (twin.known()) known.twin = twin.get();
        known.has_twin = twin.known();
    });
}

bool Losses::any() const {
    const std::lock_guard lock(mutex_);
    return !records_.empty();
}

std::vector<trace::LossRecord> Losses::take() {
    const std::lock_guard lock(mutex_);
    last_.reset();
    return std::exchange(records_, {});
}

}  // namespace mp::twin
