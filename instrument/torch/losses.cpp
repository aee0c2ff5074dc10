#include "instrument/torch/losses.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
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

template <typename T>
bool is_lost_as(const c10::Storage& memory, std::int64_t offset) {
    return !std::isfinite(static_cast<double>(static_cast<const T*>(memory.data())[offset]));
}

// Whether a scalar on the CPU is not finite. That of a device is not waited for.
bool is_lost(const c10::Storage& memory, std::int64_t offset, at::ScalarType type) {
    if (!memory.device().is_cpu() || !memory.data()) return false;
    switch (type) {
        case at::kDouble:
            return is_lost_as<double>(memory, offset);
        case at::kFloat:
            return is_lost_as<float>(memory, offset);
        case at::kHalf:
            return is_lost_as<c10::Half>(memory, offset);
        case at::kBFloat16:
            return is_lost_as<c10::BFloat16>(memory, offset);
        default:
            return false;
    }
}

}  // namespace

void Losses::candidate(const at::Tensor& scalar) {
    const std::lock_guard lock(mutex_);
    if (candidates_.size() < kCandidates)
        candidates_.push_back(weak(scalar));
    else
        candidates_[next_candidate_] = weak(scalar);
    next_candidate_ = (next_candidate_ + 1) % kCandidates;
    // The loss need not be the last scalar: what is lost stays until the step ends.
    if (has_plain_memory(scalar) && !(last_ && is_lost(last_->memory, last_->offset, last_->type)))
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
    if (last_ && !is_lost(last_->memory, last_->offset, last_->type)) last_.reset();
    return declared_.defined() ? std::exchange(declared_, {}) : loss;
}

void Losses::record(const at::Tensor& root, bool accumulates) {
    const TwinScope scope;
    add(loss_of(root), accumulates);
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
    add(at::empty({0}, options).set_(last->memory, last->offset, {}, {}), true);
}

void Losses::add(const at::Tensor& loss, bool accumulates) {
    Found found;
    found.accumulates = accumulates;
    found.late = late_.serves(loss);
    trace::LossRecord& record = found.record;
    record.dtype = dtype_of(loss.scalar_type());
    // A loss that was computed outside the dispatcher has no twin.
    record.has_twin = control_.twin_active() && !control_.local() && has_plain_memory(loss) &&
                      shadows_.find(loss).shadow.defined();
    const at::Tensor twin = record.has_twin ? shadows_.value(loss) : at::Tensor();
    if (found.late) {
        // The loss of a device is not waited for.
        found.real = late_.value(loss);
        if (record.has_twin) found.twin = late_.value(twin);
    } else {
        record.real = scalar_of(loss);
        if (record.has_twin) record.twin = scalar_of(twin);
    }
    const std::lock_guard lock(mutex_);
    found_.push_back(std::move(found));
}

bool Losses::any() const {
    const std::lock_guard lock(mutex_);
    return !found_.empty();
}

std::vector<trace::LossRecord> Losses::take() {
    const std::lock_guard lock(mutex_);
    last_.reset();
    auto found = std::exchange(found_, {});
    if (std::ranges::any_of(found, &Found::accumulates))
        std::erase_if(found, [](const Found& f) { return !f.accumulates; });
    std::vector<trace::LossRecord> records;
    for (Found& f : found) {
        if (f.late && !f.real.known()) continue;  // not measured is not 0
        const std::size_t index = records.size();
        f.record.micro_step = static_cast<std::int32_t>(index);
        records.push_back(f.record);
        if (!f.late) continue;
        late_.then([index, real = f.real, twin = f.twin](LateStep& step) {
            trace::LossRecord& known = step.record.losses[index];
            known.real = real.get();
            if (twin.known()) known.twin = twin.get();
            known.has_twin = twin.known();
        });
    }
    return records;
}

}  // namespace mp::twin
