#include "instrument/torch/late.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
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

void* Room::take(std::size_t bytes, std::size_t most) {
    bytes = (bytes + 15) & ~std::size_t{15};
    if (used_ + bytes > kChunk) {
        ++chunk_;
        used_ = 0;
    }
    if (chunk_ >= std::min(chunks_.size(), most)) return nullptr;
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

// The room of the step that runs. Called under the lock.
std::shared_ptr<Room> Late::room() {
    if (room_) return room_;
    if (rooms_.empty()) rooms_.push_back(std::make_unique<Room>());
    room_ = std::shared_ptr<Room>(rooms_.back().release(), [this](Room* room) { leave(room); });
    rooms_.pop_back();
    return room_;
}

// Nobody holds a figure of the room any more. What was launched for it may not have run, so it is used again after the
// step that runs now.
void Late::leave(Room* room) {
    const std::lock_guard lock(mutex_);
    left_.emplace_back(room);
}

template <typename T>
std::shared_ptr<T> Late::take() {
    static_assert(sizeof(T) <= Room::kChunk);
    constexpr std::size_t kMost = std::is_same_v<T, Value::Bytes> ? Room::kForValues : Room::kForFigures;
    void* chunk = nullptr;
    for (;;) {
        std::shared_ptr<Room> here;
        {
            const std::lock_guard lock(mutex_);
            here = room();
            if (chunk) here->add(std::exchange(chunk, nullptr));
            if (void* const at = here->take(sizeof(T), kMost)) return {std::move(here), static_cast<T*>(at)};
            if (!here->wants_chunk(kMost)) break;
        }
        chunk = device_->pin(Room::kChunk);
        if (!chunk) break;
    }
    without_room_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

Figure<TensorStats> Late::statistics(const at::Tensor& t, Figure<ExponentHistogram>* histogram) {
    cpu::TensorView view;
    if (t.numel() == 0 || !view_of_memory(t, view)) return nullptr;
    const auto figures = take<TensorStats>();
    const auto bins = histogram ? take<ExponentHistogram>() : nullptr;
    if (!figures || (histogram && !bins)) return nullptr;
    if (!device_->statistics(t.device(), &view, 1, figures.get(), bins.get())) return nullptr;
    if (histogram) *histogram = bins;
    return figures;
}

Figure<TensorStats> Late::input_statistics(const at::Tensor& t) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(t.unsafeGetTensorImpl());
        if (found != known_.end() && found->second.version == version_of(t)) return found->second.stats;
    }
    const Figure<TensorStats> stats = statistics(t);
    remember(t, stats);
    return stats;
}

void Late::remember(const at::Tensor& t, Figure<TensorStats> stats) {
    if (!stats || version_of(t) < 0) return;
    Known known{c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr()), version_of(t),
                std::move(stats)};
    const std::lock_guard lock(mutex_);
    const auto [at, added] = known_.try_emplace(t.unsafeGetTensorImpl(), std::move(known));
    if (!added) std::swap(at->second, known);
}

Figure<Divergence> Late::divergence(const at::Tensor& real, const at::Tensor& twin) {
    cpu::TensorView x, y;
    if (real.numel() == 0 || !view_of_memory(real, x) || !view_of_memory(twin, y)) return nullptr;
    const auto figures = take<Divergence>();
    return figures && device_->divergence(real.device(), &x, &y, 1, figures.get()) ? figures : nullptr;
}

Figure<cpu::Stagnation> Late::stagnation(const at::Tensor& before, const at::Tensor& after,
                                         const at::Tensor& wanted_before, const at::Tensor& wanted_after) {
    cpu::TensorView views[4];
    const at::Tensor* const tensors[] = {&before, &after, &wanted_before, &wanted_after};
    for (int i = 0; i < 4; ++i)
        if (!view_of_memory(*tensors[i], views[i])) return nullptr;
    const auto figures = take<cpu::Stagnation>();
    const bool launched = figures && device_->stagnation(after.device(), &views[0], &views[1], &views[2],
                                                         &views[3], 1, figures.get());
    return launched ? figures : nullptr;
}

Late::Value Late::value(const at::Tensor& t) {
    Value value;
    if (t.numel() != 1 || t.is_complex()) return value;
    const auto bytes = take<Value::Bytes>();
    if (!bytes || !device_->copy(t, bytes.get())) return value;
    value.bytes_ = bytes;
    value.type_ = t.scalar_type();
    return value;
}

// Without the dispatcher: the program's ops may wait for the lock under which this is called.
double Late::Value::get() const {
    const auto read = [this](auto value) {
        std::memcpy(&value, bytes_.get(), sizeof value);
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
    Step step{LateStep(std::move(record), std::move(ops)), {}, {}, nullptr};
    decltype(known_) known;
    std::shared_ptr<Room> room;
    {
        const std::lock_guard lock(mutex_);
        step.completions.swap(completions_);
        step.rooms.swap(left_);
        known.swap(known_);
        room.swap(room_);
    }
    if (!step.completions.empty() || !step.rooms.empty()) step.fence = device_->fence();
    steps_.push_back(std::move(step));
    write_complete(false, write);
}

std::size_t Late::finish(const Write& write, bool wait) {
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
        const std::lock_guard lock(mutex_);
        for (std::unique_ptr<Room>& room : step.rooms) {
            room->clear();
            rooms_.push_back(std::move(room));
        }
    }
}

}  // namespace mp::twin
