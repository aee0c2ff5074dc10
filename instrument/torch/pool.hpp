#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <vector>

namespace mp::twin {

// Memory of the twin. Blocks that its tensors freed are used again, so they are in the cache and cause no page
// faults. Blocks are kept until the process ends. Safe from any thread: one lock per block.
class Pool {
public:
    // Eight sizes in every doubling, from 64 B (an alignment) to 1 GiB. Pages of a block beyond the requested size are
    // never touched.
    static constexpr std::size_t kSizes = 25 * 8;
    static constexpr std::size_t size_index(std::size_t bytes);
    static constexpr std::size_t size_of(std::size_t index) { return (9 + index % 8) << (index / 8 + 2); }
    static constexpr std::size_t largest() { return size_of(kSizes - 1); }

    // A block of size_of(index) bytes; null: none is free.
    void* take(std::size_t index);
    void give(std::size_t index, void* block);

    // Held during a fork. If another thread held the lock then, the child's copy would stay locked for ever.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    std::mutex mutex_;
    std::array<std::vector<void*>, kSizes> free_;
};

// The smallest size that is large enough.
constexpr std::size_t Pool::size_index(std::size_t bytes) {
    const std::size_t last = (bytes < 64 ? 64 : bytes) - 1;
    const auto bits = static_cast<std::size_t>(std::bit_width(last));
    return (bits - 6) * 8 + ((last >> (bits - 4)) & 7);
}

}  // namespace mp::twin
