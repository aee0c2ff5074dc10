#pragma once

#include <cstdint>

#include "kernels/cpu/measure.hpp"
#include "kernels/cuda/outcome.hpp"
#include "kernels/cuda/results.hpp"

// The measuring kernels on an NVIDIA GPU: lists of tensors in one launch, on a stream of the program. Counts, extremes
// and histograms are the bits of kernels/cpu; docs/measures.md bounds the sums. Only the driver API is used, so the
// program's CUDA runtime notices nothing. Nothing here throws, synchronises, or takes memory from an allocator of the
// program. The interface has no type of the standard library, as that of kernels/cpu.

struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;

namespace mp::cuda {

using Stream = CUstream_st*;  // a CUstream, which is what a cudaStream_t is too

// Whether this build has the kernels.
bool has_kernels() noexcept;

// Whether a Scratch has room for the sketch of a product.
bool is_sketchable(const SampledProduct&) noexcept;

// Device memory for the totals of blocks, about 2 MiB. Launches on one stream may share a Scratch; launches that may
// run at the same time may not.
class Scratch {
public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // Allocates with cuMemAlloc and clears on `stream`. Call it once per stream, before training: cuMemAlloc may wait
    // for the device.
    Outcome make(Stream stream) noexcept;
    // For the end: cuMemFree waits for the device. The destructor frees nothing, because the context may be gone.
    void free() noexcept;
    bool ready() const noexcept { return at_ != 0; }

private:
    friend class Measure;
    unsigned long long at_ = 0;
};

// The kernels in one context. load() may wait for the device; call it before training. A loaded object may be used by
// several threads at once.
class Measure {
public:
    // Into the current context of the calling thread.
    Outcome load() noexcept;
    void unload() noexcept;
    bool ready() const noexcept { return module_ != nullptr; }

    // All of these launch on `stream` and return. Data addresses of the views are device addresses. results[i] is
    // written, not added to; it belongs to element i of the lists, and is valid once an event recorded after the
    // call has passed. Results are pinned host memory that the device can address as the host does
    // (cuMemHostAlloc, PyTorch's pinned tensors). If a list does not fit one launch, several follow each other.
    // At the first fault nothing more is launched; an unsupported tensor is found before the first launch.
    Outcome statistics(Stream, Scratch&, const cpu::TensorView* tensors, int count, TensorStats* results,
                       ExponentHistogram* histograms = nullptr) const noexcept;
    Outcome divergence(Stream, Scratch&, const cpu::TensorView* real, const cpu::TensorView* twin, int count,
                       Divergence* results) const noexcept;
    // moved_before and moved_after may be null: every element was meant to move.
    Outcome stagnation(Stream, Scratch&, const cpu::TensorView* before, const cpu::TensorView* after,
                       const cpu::TensorView* moved_before, const cpu::TensorView* moved_after, int count,
                       cpu::Stagnation* results) const noexcept;
    // The exact elements go into the Scratch before the product runs, which may write over its C; the comparison
    // comes after it. Between the two no other product may use the Scratch.
    Outcome expect(Stream, Scratch&, const SampledProduct&) const noexcept;
    Outcome compare(Stream, Scratch&, const SampledProduct&, ProductError* result) const noexcept;
    // The same for a sketch of the whole result, if is_sketchable(). results[i] is of the rows from i * kRowsOfSketch
    // on; both calls write to it.
    Outcome expect_sketch(Stream, Scratch&, const SampledProduct&, RowsError* results) const noexcept;
    Outcome compare_sketch(Stream, Scratch&, const SampledProduct&, RowsError* results) const noexcept;
    // results[i] is of block i. Reads fp64, fp32, fp16 and bf16.
    Outcome sketch(Stream, Scratch&, const SketchedBlocks&, Sketch* results) const noexcept;
    Outcome first_nonfinite(Stream, Scratch&, const cpu::TensorView* tensors, int count,
                            Nonfinite* results) const noexcept;

    // For tests and benchmarks.
    void set_waves(int waves) noexcept { waves_ = waves; }  // blocks per place on the device

    static constexpr int kKinds = 4;    // statistics, histogram, divergence, nonfinite: one kernel per format
    static constexpr int kFormats = 6;  // cpu::index_of()
    static constexpr int kKernels = kKinds * kFormats + 1;

private:
    friend struct Launcher;
    struct Kernel {
        CUfunc_st* small = nullptr;  // with a list of 4 KB
        CUfunc_st* large = nullptr;  // with a list of 32 KB; null where the driver is too old
        int places = 0;              // blocks that run at once on the device
    };

    CUmod_st* module_ = nullptr;
    CUfunc_st *expect_ = nullptr, *compare_ = nullptr, *sketch_ = nullptr;
    CUfunc_st *sketch_inner_ = nullptr, *sketch_expect_ = nullptr, *sketch_compare_ = nullptr;
    Kernel kernels_[kKernels] = {};
    int waves_ = 1;
    bool large_ = false;
};

}  // namespace mp::cuda
