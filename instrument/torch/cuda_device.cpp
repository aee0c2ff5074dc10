#include "instrument/torch/cuda_device.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cuda/driver.hpp"
#include "kernels/cuda/measure.hpp"
#include "kernels/torch/native_stream.hpp"

namespace mp::twin {
namespace {

constexpr std::size_t kDevices = 16;
constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kFirstWithTf32 = 8;
constexpr unsigned kPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE: every context may write there

class Events final : public Device::Fence {
public:
    void add(const c10::Stream& stream) {
        events_.emplace_back(stream.device_type());
        events_.back().record(stream);
    }
    bool passed() noexcept override {
        try {
            return std::all_of(events_.begin(), events_.end(), [](const c10::Event& e) { return e.query(); });
        } catch (const std::exception&) {
            return true;  // the device is lost, and the program learns of it by itself
        }
    }
    bool wait() noexcept override {
        constexpr int kMilliseconds = 10'000;
        for (int i = 0; i < kMilliseconds && !passed(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return passed();
    }

private:
    std::vector<c10::Event> events_;
};

class CudaDevice final : public Device {
public:
    explicit CudaDevice(c10::DeviceType type) : type_(type) {}

    c10::DispatchKey key() const noexcept override {
        return type_ == c10::DeviceType::CUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::PrivateUse1;
    }
    bool serves(const at::Tensor& t) noexcept override {
        return t.defined() && t.device().type() == type_ &&
               static_cast<std::size_t>(t.get_device()) < kDevices && cuda::driver().complete();
    }

    bool captures() noexcept override {
        int status = 0;
        try {
            const c10::Stream stream = guard().getStream(guard().getDevice());
            return cuda::driver().capturing(native(stream), &status) == 0 && status != 0;
        } catch (const std::exception&) {
            return false;
        }
    }

    void* pin(std::size_t bytes) noexcept override {
        void* at = nullptr;
        return cuda::driver().pin(&at, bytes, kPortable) == 0 ? at : nullptr;
    }

    bool statistics(at::Device device, const View* views, int count, TensorStats* stats,
                    ExponentHistogram* histograms) noexcept override {
        return launch(device, [&](auto& m, auto stream, auto& scratch) {
            return m.statistics(stream, scratch, views, count, stats, histograms);
        });
    }
    bool divergence(at::Device device, const View* real, const View* twin, int count,
                    Divergence* into) noexcept override {
        return launch(device, [&](auto& m, auto stream, auto& scratch) {
            return m.divergence(stream, scratch, real, twin, count, into);
        });
    }
    bool stagnation(at::Device device, const View* before, const View* after, const View* wanted_before,
                    const View* wanted_after, int count, cpu::Stagnation* into) noexcept override {
        return launch(device, [&](auto& m, auto stream, auto& scratch) {
            return m.stagnation(stream, scratch, before, after, wanted_before, wanted_after, count, into);
        });
    }
    bool copy(const at::Tensor& t, void* to) noexcept override {
        const auto from = reinterpret_cast<cuda::DeviceAddress>(t.data_ptr());
        return launch(t.device(), [&](auto&, auto stream, auto&) {
            return cuda::driver().read(to, from, t.element_size(), stream) == 0;
        });
    }

    std::unique_ptr<Fence> fence() override {
        std::vector<c10::Stream> used;
        {
            const std::lock_guard lock(mutex_);
            used.swap(used_);
        }
        auto events = std::make_unique<Events>();
        for (const c10::Stream& stream : used) events->add(stream);
        return events;
    }

private:
    const c10::impl::DeviceGuardImplInterface& guard() const { return *c10::impl::getDeviceGuardImpl(type_); }
    cuda::Stream native(const c10::Stream& stream) const { return native_stream(guard(), stream); }

    // The kernels in the context of one GPU.
    struct Gpu {
        std::mutex mutex;
        bool tried = false;
        cuda::Measure measure;
        std::map<cuda::Stream, cuda::Scratch> scratch;

        // The memory of a stream; null if there is none, or no kernels. What a thread sees first may wait for this GPU,
        // and other threads that measure on it wait with it.
        cuda::Scratch* scratch_of(cuda::Stream stream) {
            const std::lock_guard lock(mutex);
            if (!std::exchange(tried, true)) measure.load();
            if (!measure.ready()) return nullptr;
            cuda::Scratch& own = scratch[stream];
            return own.ready() || own.make(stream) ? &own : nullptr;
        }
    };

    // The launch waits while the GPU's queue is full, so it holds no lock (see ShadowMap).
    template <typename Launch>
    bool launch(at::Device device, const Launch& run) noexcept {
        try {
            const c10::DeviceGuard on(device);
            const c10::Stream stream = guard().getStream(device);
            const cuda::Stream handle = native(stream);
            Gpu& gpu = gpus_[static_cast<std::size_t>(device.index())];
            cuda::Scratch* const scratch = gpu.scratch_of(handle);
            if (!scratch || !run(gpu.measure, handle, *scratch)) return false;
            const std::lock_guard lock(mutex_);
            if (std::find(used_.begin(), used_.end(), stream) == used_.end()) used_.push_back(stream);
            return true;
        } catch (const std::exception&) {
            return false;
        }
    }

    const c10::DeviceType type_;
    std::mutex mutex_;  // of used_
    std::array<Gpu, kDevices> gpus_;
    std::vector<c10::Stream> used_;  // since the last fence
};

}  // namespace

bool has_tf32(at::Device device) noexcept {
    const auto attribute = cuda::driver().attribute;
    int major = 0;
    return attribute && attribute(&major, kCapabilityMajor, device.index()) == 0 && major >= kFirstWithTf32;
}

std::unique_ptr<Device> make_cuda_device(c10::DeviceType type) {
    return cuda::has_kernels() ? std::make_unique<CudaDevice>(type) : nullptr;
}

}  // namespace mp::twin
