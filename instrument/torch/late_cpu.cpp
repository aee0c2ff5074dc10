#include "instrument/torch/late_cpu.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

struct Result {
    void* place;
    std::vector<unsigned char> bytes;
};

class LateFence final : public Device::Fence {
public:
    LateFence(std::vector<Result> results, int steps) : results_(std::move(results)), steps_(steps) {}

    bool passed() noexcept override {
        if (steps_-- > 0) return false;
        return wait();
    }
    bool wait() noexcept override {
        for (const Result& r : results_) std::memcpy(r.place, r.bytes.data(), r.bytes.size());
        return true;
    }

private:
    const std::vector<Result> results_;
    int steps_;
};

class LateCpu final : public Device {
public:
    explicit LateCpu(int steps) : steps_(steps) {}

    c10::DispatchKey key() const noexcept override { return c10::DispatchKey::CPU; }
    bool serves(const at::Tensor& t) noexcept override { return t.defined() && t.device().is_cpu(); }
    bool captures() noexcept override { return false; }
    void* pin(std::size_t bytes) noexcept override { return std::malloc(bytes); }

    bool statistics(at::Device, const View* views, int count, TensorStats* stats,
                    ExponentHistogram* histograms) noexcept override {
        for (int i = 0; i < count; ++i) {
            TensorStats s;
            ExponentHistogram h;
            if (!cpu::statistics(views[i], s, histograms ? &h : nullptr)) return false;
            keep(&stats[i], s);
            if (histograms) keep(&histograms[i], h);
        }
        return true;
    }
    bool divergence(at::Device, const View* real, const View* twin, int count,
                    Divergence* into) noexcept override {
        for (int i = 0; i < count; ++i) {
            Divergence d;
            if (!cpu::divergence(real[i], twin[i], d)) return false;
            keep(&into[i], d);
        }
        return true;
    }
    bool stagnation(at::Device, const View* before, const View* after, const View* wanted_before,
                    const View* wanted_after, int count, cpu::Stagnation* into) noexcept override {
        for (int i = 0; i < count; ++i) {
            cpu::Stagnation s;
            if (!cpu::stagnation(before[i], after[i], wanted_before[i], wanted_after[i], s)) return false;
            keep(&into[i], s);
        }
        return true;
    }
    bool copy(const at::Tensor& t, void* to) noexcept override {
        const std::lock_guard lock(mutex_);
        const auto* const bytes = static_cast<const unsigned char*>(t.data_ptr());
        results_.push_back({to, {bytes, bytes + t.element_size()}});
        return true;
    }

    std::unique_ptr<Fence> fence() override {
        const std::lock_guard lock(mutex_);
        return std::make_unique<LateFence>(std::exchange(results_, {}), steps_);
    }

private:
    template <typename T>
    void keep(T* place, const T& value) {
        const std::lock_guard lock(mutex_);
        const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
        results_.push_back({place, {bytes, bytes + sizeof value}});
        std::memset(static_cast<void*>(place), 0xA5, sizeof value);
    }

    const int steps_;
    std::mutex mutex_;
    std::vector<Result> results_;
};

}  // namespace

std::unique_ptr<Device> make_late_cpu(int steps) { return std::make_unique<LateCpu>(steps); }

}  // namespace mp::twin
