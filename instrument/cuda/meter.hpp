#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "instrument/cuda/abi.hpp"
#include "kernels/cpu/measure.hpp"
#include "kernels/cuda/results.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// Measures tensors on a GPU, on the stream of the call that reads or writes them. Nothing here waits for the device,
// and nothing is launched while the stream records a CUDA graph. Not safe from several threads at once.

namespace mp::raw {

// Host memory that the device writes. It is our own memory, registered with the driver, so that it stays readable after
// a reset of the device.
class Slots {
public:
    static constexpr std::size_t kBytes = 1 << 20;
    ~Slots() = default;  // stays registered: unregistering waits for the device

    // `count` figures, zero; null when all are taken.
    template <class Figure>
    Figure* take(int count) noexcept {
        void* const at = take_bytes(static_cast<std::size_t>(count) * sizeof(Figure));
        auto* const figures = static_cast<Figure*>(at);
        if (at) std::uninitialized_value_construct_n(figures, count);
        return figures;
    }
    void clear() noexcept { used_ = 0; }

private:
    friend class Meter;
    void* take_bytes(std::size_t bytes) noexcept;

    void* at_ = nullptr;
    std::size_t used_ = 0;
};

// Memory on a GPU, kept until the process ends: freeing it would wait for the device.
class DeviceMemory {
public:
    std::uint64_t bytes() const noexcept { return bytes_; }
    const void* data() const noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses of the device as integers
        return reinterpret_cast<const void*>(at_);
    }

private:
    friend class Meter;
    unsigned long long at_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t context_ = 0;
};

// Memory that the program has now, as the driver knows it.
struct Allocation {
    std::uint64_t id = 0;  // never used twice; 0: the driver does not know the address
    std::uintptr_t begin = 0;
    std::uint64_t bytes = 0;
    bool is_whole = false;   // not one of several mappings in a row
    bool is_pooled = false;  // of a memory pool: cudaMallocAsync
    int device = -1;         // -1: unknown

    bool holds(const void* at, std::uint64_t count) const {
        const auto offset = reinterpret_cast<std::uintptr_t>(at) - begin;
        return id != 0 && offset <= bytes && count <= bytes - offset;
    }
};

class Meter {
public:
    Meter();
    ~Meter();

    // Why nothing is measured; empty: measuring works, or was not tried yet.
    const std::string& refusal() const noexcept { return refusal_; }

    // Writes the statistics of `count` tensors into slots once the stream has come there. False: nothing was launched.
    bool statistics(abi::Stream, const cpu::TensorView*, int count, TensorStats* into) noexcept;

    // Some elements of a product again: before it, and the comparison after it. See kernels/cuda.
    bool expect(abi::Stream, const cuda::SampledProduct&) noexcept;
    bool compare(abi::Stream, const cuda::SampledProduct&, cuda::ProductError* into) noexcept;

    // The same for a sketch of all elements. The figures are one for each kRowsOfSketch rows.
    bool expect_sketch(abi::Stream, const cuda::SampledProduct&, cuda::RowsError* into) noexcept;
    bool compare_sketch(abi::Stream, const cuda::SampledProduct&, cuda::RowsError* into) noexcept;

    bool sketch(abi::Stream, const cuda::SketchedBlocks&, cuda::Sketch* into) noexcept;

    // Elements that are the same before and after.
    bool stagnation(abi::Stream, const cpu::TensorView* before, const cpu::TensorView* after, int count,
                    cpu::Stagnation* into) noexcept;
    // Empty if no memory is free.
    DeviceMemory memory(abi::Stream, std::uint64_t bytes) noexcept;
    bool copy(abi::Stream, const DeviceMemory& to, const void* from, std::uint64_t bytes) noexcept;

    // Asks the driver, which keeps the map of all allocations, also those of libraries.
    static Allocation allocation_of(const void* at) noexcept;
    // The size of the allocations that have these bytes, one or several mappings in a row; 0: some bytes are in none.
    static std::uint64_t extent_of(const void* at, std::uint64_t bytes) noexcept;
    // The id of the allocation alone; 0: the driver does not know the address.
    static std::uint64_t allocation_id_of(const void* at) noexcept;
    // The device of the calling thread; -1: unknown.
    static int device() noexcept;
    // Whether the device of the calling thread has a lower compute capability, times 10. False where that is not known.
    bool is_below_capability(int capability) noexcept;

    std::unique_ptr<Slots> slots() noexcept;  // null: none left, or no driver

    // The last figure on every stream that was used since the last fence.
    class Fence {
    public:
        bool passed() noexcept;
        // Whether the figures before it were written. False where the device was lost or reset before.
        bool valid() const noexcept { return valid_; }

    private:
        friend class Meter;
        struct Mark {
            abi::Stream stream;
            void* event;
            void* context;
            std::uint64_t context_id;
        };
        std::vector<Mark> marks_;
        bool valid_ = true;
    };
    Fence fence();

private:
    struct Gpu;  // the kernels in one context
    bool can_measure() noexcept;
    // Calls `run` with the kernels and a Scratch for the stream. False: it was not called, or it failed.
    template <class Run>
    bool launch(abi::Stream, const Run& run) noexcept;
    Gpu* gpu_of_context() noexcept;
    void mark(abi::Stream, const Gpu&);

    std::map<std::uint64_t, std::unique_ptr<Gpu>> gpus_;  // by the id of the context
    Fence next_;
    std::string refusal_;
    std::size_t slots_made_ = 0;
    std::map<int, int> capabilities_;  // of devices that were asked; 0: unknown
};

}  // namespace mp::raw
