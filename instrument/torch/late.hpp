#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "instrument/torch/device.hpp"
#include "instrument/torch/ledger.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// Pinned memory for the figures of one step.
class Room {
public:
    static constexpr std::size_t kChunk = 1 << 20;
    // The last chunk is for values alone, as those of losses: an evaluation can fill the others.
    static constexpr std::size_t kForFigures = 64, kForValues = kForFigures + 1;

    // Zeroed. Null when a chunk is needed for it, or when `most` of them are used.
    void* take(std::size_t bytes, std::size_t most);
    bool wants_chunk(std::size_t most) const { return chunks_.size() < most && chunk_ >= chunks_.size(); }
    void add(void* chunk) { chunks_.push_back(static_cast<std::byte*>(chunk)); }
    void clear() { chunk_ = used_ = 0; }

private:
    std::vector<std::byte*> chunks_;  // pinned for the life of the process
    std::size_t chunk_ = 0, used_ = 0;
};

// What the device writes, and while it is held, its room. Null: not measured.
template <typename T>
using Figure = std::shared_ptr<const T>;

// A step whose record waits for figures of a device.
struct LateStep {
    LateStep(trace::StepRecord r, Ledger::Entries o) : record(std::move(r)), ops(std::move(o)) {}

    trace::StepRecord record;
    Ledger::Entries ops;

    // The record of a named tensor; null if the step has none.
    trace::TensorRecord* tensor(trace::TensorKind, std::string_view name);

private:
    std::unordered_map<std::string, std::size_t> tensors_;
};

// Measures tensors on a device. Its figures come later than the calls: each measure gives the place of a figure, and
// then() says what to do with it when the figures of the step are complete. Steps are completed in their order. On the
// CPU nothing is late, and serves() is false. Safe from any thread; steps end one at a time. Nothing is launched or
// pinned under the lock (see ShadowMap).
class Late {
public:
    explicit Late(std::unique_ptr<Device> device) : device_(std::move(device)) {}

    // Whether an op with these keys runs on the device.
    bool is_of_device(c10::DispatchKeySet keys) const noexcept {
        return device_ && keys.has_backend(c10::toBackendComponent(device_->key()));
    }
    bool serves(const at::Tensor& t) noexcept { return device_ && device_->serves(t); }
    bool captures() noexcept { return device_ && device_->captures(); }
    // Host memory that the device reads and writes, for the life of the process. Null when there is none left.
    void* pin(std::size_t bytes) noexcept { return device_ ? device_->pin(bytes) : nullptr; }

    // Null when the tensor cannot be measured.
    Figure<TensorStats> statistics(const at::Tensor&, Figure<ExponentHistogram>* histogram = nullptr);
    // The same for an input of an op. Most inputs are results of this step, whose statistics are remembered.
    Figure<TensorStats> input_statistics(const at::Tensor&);
    // A result that the op did not write in place.
    void remember(const at::Tensor&, Figure<TensorStats>);
    Figure<Divergence> divergence(const at::Tensor& real, const at::Tensor& twin);
    Figure<cpu::Stagnation> stagnation(const at::Tensor& before, const at::Tensor& after,
                                       const at::Tensor& wanted_before, const at::Tensor& wanted_after);
    // The value of a tensor of one element.
    class Value {
    public:
        bool known() const { return bytes_ != nullptr; }
        double get() const;

    private:
        friend class Late;
        struct Bytes {
            std::byte value[16];
        };
        Figure<Bytes> bytes_;
        at::ScalarType type_ = at::ScalarType::Undefined;
    };
    Value value(const at::Tensor&);

    using Completion = std::function<void(LateStep&)>;
    void then(Completion);

    // The step ends. If figures are missing, of this step or one before it, the record is kept until they are there.
    // Every record that is complete goes to `write`, in order.
    using Write = std::function<void(trace::StepRecord&)>;
    void end_step(trace::StepRecord, Ledger::Entries, const Write& write);
    // Figures that had no room so far.
    std::uint64_t without_room() const noexcept { return without_room_.load(std::memory_order_relaxed); }
    // At the end of the program. `wait`: for the figures that are missing. Returns how many steps are lost.
    std::size_t finish(const Write& write, bool wait);

private:
    using Rooms = std::vector<std::unique_ptr<Room>>;
    struct Step {
        LateStep figures;
        std::vector<Completion> completions;
        Rooms rooms;  // that may be used again when the fence has passed
        std::unique_ptr<Device::Fence> fence;
    };

    // A tensor as it was: the weak pointer keeps the address in use.
    struct Known {
        c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
        std::int64_t version;
        Figure<TensorStats> stats;
    };

    void write_complete(bool wait, const Write& write);
    // A place for the device to write to.
    template <typename T>
    std::shared_ptr<T> take();
    std::shared_ptr<Room> room();
    void leave(Room*);

    const std::unique_ptr<Device> device_;
    std::deque<Step> steps_;  // ended, not complete
    std::mutex mutex_;
    std::shared_ptr<Room> room_;  // of the step that runs, as the next three
    Rooms left_;                  // whose figures have no owner, while the device may still write them
    std::vector<Completion> completions_;
    std::unordered_map<const c10::TensorImpl*, Known> known_;
    Rooms rooms_;  // free
    std::atomic<std::uint64_t> without_room_{0};
};

}  // namespace mp::twin
