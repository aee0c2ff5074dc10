#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/measure.hpp"

// Any layout as contiguous pieces of at most kBlock elements: from memory as it lies where every tensor is
// contiguous, through a buffer otherwise. The pieces of several tensors of the same sizes hold the same
// elements; they come in the memory order of the first tensor, so a transposed matrix is read along its rows.

namespace mp::cpu {

inline constexpr int kMaxTensors = 4;

std::size_t width_of(DType) noexcept;  // bytes of an element; 0 for what is not measured
// A float format, a sensible shape, and data unless it is empty.
bool usable(const TensorView&) noexcept;
bool same_sizes(const TensorView&, const TensorView&) noexcept;

class Walk {
public:
    // All of them usable and of the same sizes.
    Walk(const TensorView* const* tensors, int count) noexcept;

    bool empty() const noexcept { return elements_ == 0; }
    // Calls piece(const void* const* data, std::size_t elements) for each.
    template <class Piece>
    void each(Piece&& piece) noexcept;
    // The same, up to the first for which piece() is true: then true.
    template <class Piece>
    bool any(Piece&& piece) noexcept;

private:
    struct Axis {
        std::int64_t size = 0;
        std::int64_t strides[kMaxTensors] = {};  // bytes
    };

    void drop_ones_and_sort() noexcept;
    void join_neighbours() noexcept;
    void gather(std::int64_t first, std::size_t elements, unsigned char* const* buffers) const noexcept;
    void copy_run(int tensor, const std::int64_t* index, std::size_t run, unsigned char* out) const noexcept;

    int count_ = 0;
    int dims_ = 0;
    std::int64_t elements_ = 1;
    const char* data_[kMaxTensors] = {};
    std::size_t width_[kMaxTensors] = {};
    Axis axes_[kMaxDims];  // outermost first
    bool contiguous_ = false;
};

}  // namespace mp::cpu

#include "kernels/cpu/walk-inl.hpp"
