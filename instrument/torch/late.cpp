#include "instrument/torch/late.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

std::string key_of(trace::TensorKind kind, std::string_view name) {
    return static_cast<char>(kind) + std::string(name);
}

// Negative: the tensor does not count its changes.
std::int64_t version_of(const at::Tensor& t) {
    return t.is_inference() ? -1 : static_cast<std::int64_t>(t._version());
}

}  // namespace

void* Room::take_bytes(std::size_t bytes) {
    bytes = (bytes + 15) & ~std::size_t{15};
    if (bytes > kChunk) return nullptr;
    if (used_ + bytes > kChunk) {
        ++chunk_;
        used_ = 0;
    }
    if (chunk_ >= chunks_.size()) {
        void* const chunk = chunks_.size() < kChunks ? device_.pin(kChunk) : nullptr;
        if (!chunk) return nullptr;
        chunks_.push_back(static_cast<std::byte*>(chunk));
    }
    std::byte* const at = chunks_[chunk_] + used_;
    used_ += bytes;
    std::memset(at, 0, bytes);
    return at;
}

trace::TensorRecord* LateStep::tensor(trace::TensorKind kind, std::string_view name) {
    if (tensors_.empty())
        for (std::size_t i = 0; i < record.tensors.size(); ++i)
            tensors_.emplace(key_of(record.tensors[i].kind, record.tensors[i].name), i);
    const auto found = tensors_.find(key_of(kind, name));
    return found == tensors_.end() ? nullptr : &record.tensors[found->second];
}

template <typename T>
T* Late::take(std::size_t count) {
    if (!room_) {
        if (rooms_.empty()) {
            room_ = std::make_unique<Room>(*device_);
        } else {
            room_ = std::move(rooms_.back());
            rooms_.pop_back();
        }
    }
    return room_->take<T>(count);
}

const TensorStats* Late::statistics(const at::Tensor& t, const ExponentHistogram** histogram) {
    cpu::TensorView view;
    if (t.numel() == 0 || !view_of_memory(t, view)) return nullptr;
    const std::lock_guard lock(mutex_);
    auto* const figures = take<TensorStats>();
    auto* const bins = histogram ? take<ExponentHistogram>() : nullptr;
    if (!figures || (histogram && !bins)) return nullptr;
    if (!device_->statistics(t.device(), &view, 1, figures, bins)) return nullptr;
    if (histogram) *histogram = bins;
    return figures;
}

const TensorStats* Late::input_statistics(const at::Tensor& t) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(t.unsafeGetTensorImpl());
        if (found != known_.end() && found->second.version == version_of(t)) return found->second.stats;
    }
    const TensorStats* const stats = statistics(t);
    remember(t, stats);
    return stats;
}

void Late::remember(const at::Tensor& t, const TensorStats* stats) {
    if (!stats || version_of(t) < 0) return;
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(
        t.unsafeGetTensorImpl(),
        Known{c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr()), version_of(t), stats});
}

const Divergence* Late::divergence(const at::Tensor& real, const at::Tensor& twin) {
    cpu::TensorView x, y;
    if (real.numel() == 0 || !view_of_memory(real, x) || !view_of_memory(twin, y)) return nullptr;
    const std::lock_guard lock(mutex_);
    auto* const figures = take<Divergence>();
    return figures && device_->divergence(real.device(), &x, &y, 1, figures) ? figures : nullptr;
}

const cpu::Standstill* Late::standstill(const at::Tensor& before, const at::Tensor& after,
                                        const at::Tensor& wanted_before, const at::Tensor& wanted_after) {
    cpu::TensorView views[4];
    const at::Tensor* const tensors[] = {&before, &after, &wanted_before, &wanted_after};
    for (int i = 0; i < 4; ++i)
        if (!view_of_memory(*tensors[i], views[i])) return nullptr;
    const std::lock_guard lock(mutex_);
    auto* const figures = take<cpu::Standstill>();
    const bool launched = figures && device_->standstill(after.device(), &views[0], &views[1], &views[2],
                                                         &views[3], 1, figures);
    return launched ? figures : nullptr;
}

Late::Value Late::value(const at::Tensor& t) {
    Value value;
    if (t.numel() != 1 || t.is_complex()) return value;
    const std::lock_guard lock(mutex_);
    void* const bytes = take<std::uint64_t>(2);
    if (!bytes || !device_->copy(t, bytes)) return value;
    value.bytes_ = bytes;
    value.type_ = t.scalar_type();
    return value;
}

// Without the dispatcher: the program's ops may wait for the lock under which this is called.
double Late::Value::get() const {
    const auto read = [this](auto value) {
        std::memcpy(&value, bytes_, sizeof value);
        return static_cast<double>(value);
    };
    switch (type_) {
        case at::kDouble:
            return read(double{});
        case at::kFloat:
            return read(float{});
        case at::kHalf:
            return read(c10::Half{});
        case at::kBFloat16:
            return read(c10::BFloat16{});
        case at::kLong:
            return read(std::int64_t{});
        default:
            return std::numeric_limits<double>::quiet_NaN();
    }
}

void Late::then(Completion completion) {
    const std::lock_guard lock(mutex_);
    completions_.push_back(std::move(completion));
}

void Late::end_step(trace::StepRecord record, Ledger::Entries ops, const Write& write) {
    const std::lock_guard lock(mutex_);
    Step step{LateStep(std::move(record), std::move(ops)), std::move(completions_), std::move(room_),
              nullptr};
    completions_.clear();
    known_.clear();
    if (!step.completions.empty()) step.fence = device_->fence();
    steps_.push_back(std::move(step));
    write_complete(false, write);
}

std::size_t Late::finish(const Write& write, bool wait) {
    const std::lock_guard lock(mutex_);
    write_complete(wait, write);
    return steps_.size();
}

void Late::write_complete(bool wait, const Write& write) {
    for (; !steps_.empty(); steps_.pop_front()) {
        Step& step = steps_.front();
        if (step.fence && !(wait ? step.fence->wait() : step.fence->passed())) return;
        for (const Completion& complete : step.completions) complete(step.figures);
        step.figures.record.ops = Ledger::records(std::move(step.figures.ops));
        write(step.figures.record);
        if (step.room) {
            step.room->clear();
            rooms_.push_back(std::move(step.room));
        }
    }
}

}  // namespace mp::twin
