#pragma once

// Bodies of Walk::each and any; included by walk.hpp.

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/walk.hpp"

namespace mp::cpu {

template <class Piece>
void Walk::each(Piece&& piece) noexcept {
    any([&](const void* const* data, std::size_t n) { return piece(data, n), false; });
}

template <class Piece>
bool Walk::any(Piece&& piece) noexcept {
    const auto block = static_cast<std::int64_t>(kBlock);
    const void* data[kMaxTensors] = {};
    if (layout_.contiguous) {
        for (std::int64_t i = 0; i < layout_.elements; i += block) {
            for (int t = 0; t < layout_.count; ++t)
                data[t] = data_[t] + i * static_cast<std::int64_t>(layout_.width[t]);
            if (piece(data,
                      static_cast<std::size_t>(layout_.elements - i < block ? layout_.elements - i : block)))
                return true;
        }
        return false;
    }
    alignas(64) unsigned char buffers[kMaxTensors][kBlock * sizeof(double)];
    unsigned char* into[kMaxTensors] = {};
    for (int t = 0; t < layout_.count; ++t) data[t] = into[t] = buffers[t];
    for (std::int64_t i = 0; i < layout_.elements; i += block) {
        const auto n = static_cast<std::size_t>(layout_.elements - i < block ? layout_.elements - i : block);
        gather(i, n, into);
        if (piece(data, n)) return true;
    }
    return false;
}

}  // namespace mp::cpu
