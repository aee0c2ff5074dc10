#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/measure.hpp"

// Splits any layout into contiguous pieces of at most kBlock elements. Where every tensor is contiguous, a
// piece is the memory itself, otherwise a buffer. The pieces of several tensors of the same sizes hold the
// same elements. They come in the memory order of the first tensor, so a transposed matrix is read along
// its rows.

namespace mp::cpu {

inline constexpr int kMaxTensors = 4;

std::size_t width_of(DType) noexcept;  // bytes of an element; 0 for a dtype that is not measured
// Whether the tensor has a float format, a valid shape, and data unless it is empty.
bool usable(const TensorView&) noexcept;
bool same_sizes(const TensorView&, const TensorView&) noexcept;

class Walk {
public:
    // All tensors must be usable and have the same sizes.
    Walk(const TensorView* const* tensors, int count) noexcept;

    bool empty() const noexcept { return elements_ == 0; }
    // Calls piece(const void* const* data, std::size_t elements) for each piece.
    template <class Piece>
    void each(Piece&& piece) noexcept;
    // The same, but stops and returns true at the first piece for which piece() returns true.
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
