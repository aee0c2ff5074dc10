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

// The axes of tensors of the same sizes, without those of size 1, and as few as possible: axes that are one in every
// tensor are joined. In the order of the dimensions, or in the memory order of the first tensor.
struct Layout {
    enum class Order : std::uint8_t { dimensions, memory };
    struct Axis {
        std::int64_t size = 0;
        std::int64_t strides[kMaxTensors] = {};  // bytes
    };

    // All tensors must be usable and have the same sizes.
    Layout(const TensorView* const* tensors, int count, Order) noexcept;
    void drop_ones() noexcept;
    void sort() noexcept;
    void join_neighbours() noexcept;

    int count = 0;
    int dims = 0;
    std::int64_t elements = 1;
    std::size_t width[kMaxTensors] = {};  // bytes of an element
    Axis axes[kMaxDims];                  // outermost first
    bool contiguous = false;              // every tensor
};

class Walk {
public:
    // All tensors must be usable and have the same sizes.
    Walk(const TensorView* const* tensors, int count) noexcept;

    bool empty() const noexcept { return layout_.elements == 0; }
    // Calls piece(const void* const* data, std::size_t elements) for each piece.
    template <class Piece>
    void each(Piece&& piece) noexcept;
    // The same, but stops and returns true at the first piece for which piece() returns true.
    template <class Piece>
    bool any(Piece&& piece) noexcept;

private:
    void gather(std::int64_t first, std::size_t elements, unsigned char* const* buffers) const noexcept;
    void copy_run(int tensor, const std::int64_t* index, std::size_t run, unsigned char* out) const noexcept;

    Layout layout_;
    const char* data_[kMaxTensors] = {};
};

}  // namespace mp::cpu

#include "kernels/cpu/walk-inl.hpp"
