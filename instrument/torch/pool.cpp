#include "instrument/torch/pool.hpp"

#include <c10/core/Allocator.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// Eight sizes in every doubling, from 64 B (an alignment) to 1 GiB. Pages of a block that nobody asked for are
// never touched.
constexpr std::size_t kSizes = 25 * 8;

constexpr std::size_t size_index(std::size_t bytes) {
    const std::size_t last = std::max<std::size_t>(bytes, 64) - 1;
    const auto bits = static_cast<std::size_t>(std::bit_width(last));
    return (bits - 6) * 8 + ((last >> (bits - 4)) & 7);
}

constexpr std::size_t size_of(std::size_t index) { return (9 + index % 8) << (index / 8 + 2); }

// The smallest size that is large enough.
constexpr bool fits(std::size_t bytes) {
    return size_of(size_index(bytes)) >= bytes && (bytes <= 64 || size_of(size_index(bytes) - 1) < bytes);
}
static_assert(size_of(size_index(1)) == 64 && size_of(kSizes - 1) == std::size_t{1} << 30);
static_assert(fits(64) && fits(65) && fits(72) && fits(73) && fits(1 << 20) && fits((1 << 20) + 1) &&
              fits(123456789));
static_assert(fits(std::size_t{1} << 30) && size_index(std::size_t{1} << 30) == kSizes - 1);

class Pool {
public:
    void* take(std::size_t index) {
        const std::lock_guard lock(mutex_);
        Free& free = free_[index];
        if (free.blocks.empty()) return nullptr;
        void* const block = free.blocks.back();
        free.blocks.pop_back();
        free.least = std::min(free.least, free.blocks.size());
        return block;
    }

    void give(std::size_t index, void* block) {
        const std::lock_guard lock(mutex_);
        free_[index].blocks.push_back(block);
    }

    // The blocks at the bottom that were there all along.
    std::vector<void*> unused() {
        const std::lock_guard lock(mutex_);
        std::vector<void*> all;
        for (Free& free : free_) {
            const auto end = free.blocks.begin() + static_cast<std::ptrdiff_t>(free.least);
            all.insert(all.end(), free.blocks.begin(), end);
            free.blocks.erase(free.blocks.begin(), end);
            free.least = free.blocks.size();
        }
        return all;
    }

    // A fork while another thread is in here would leave the child's copy locked for ever.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    struct Free {
        std::vector<void*> blocks;
        std::size_t least = 0;  // blocks that were free throughout the step
    };

    std::mutex mutex_;
    std::array<Free, kSizes> free_;
};

// Never destroyed: tensors die after static destructors have run.
Pool& pool() {
    static auto* const all = new Pool;
    return *all;
}

template <std::size_t index>
void give_back(void* block) {
    pool().give(index, block);
}

template <std::size_t... indices>
constexpr std::array<c10::DeleterFnPtr, sizeof...(indices)> deleters(std::index_sequence<indices...>) {
    return {&give_back<indices>...};
}

// Weights and moments are streamed through in every step: a page of 2 MiB spares 511 faults and as many misses of the
// TLB. Only what lies whole within the block is asked for, so no memory is used that was not; a no changes nothing.
void ask_for_large_pages(void* block, std::size_t bytes) {
    constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
    const auto begin = (reinterpret_cast<std::uintptr_t>(block) + kPage - 1) & ~(kPage - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(block) + bytes) & ~(kPage - 1);
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// Before torch's own allocator of the CPU. A block of the pool is one of that allocator's, so whoever frees one by
// its raw deleter does no harm. Torch has changed whether allocate() is const; one of the two overrides.
class PoolAllocator final : public c10::Allocator {
public:
    explicit PoolAllocator(c10::Allocator* plain) : plain_(plain) {}

    c10::DataPtr allocate(std::size_t bytes) { return allocate_either(bytes); }
    c10::DataPtr allocate(std::size_t bytes) const { return allocate_either(bytes); }
    c10::DeleterFnPtr raw_deleter() const override { return plain_->raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

private:
    c10::DataPtr allocate_either(std::size_t bytes) const {
        static constexpr auto kDeleters = deleters(std::make_index_sequence<kSizes>());
        const bool is_twins = thread_state().twin_scopes > 0 && bytes > 0 && bytes <= size_of(kSizes - 1);
        if (!is_twins) return plain_->allocate(bytes);
        const std::size_t index = size_index(bytes);
        void* block = pool().take(index);
        if (!block) {
            block = plain_->raw_allocate(size_of(index));
            ask_for_large_pages(block, size_of(index));
        }
        return {block, block, kDeleters[index], c10::Device(c10::DeviceType::CPU)};
    }

    c10::Allocator* plain_;
};

c10::Allocator* g_plain = nullptr;

}  // namespace

void install_pool() {
    c10::Allocator* const plain = c10::GetAllocator(c10::DeviceType::CPU);
    if (g_plain || !plain || !plain->raw_deleter()) return;
    g_plain = plain;
    c10::SetAllocator(c10::DeviceType::CPU, new PoolAllocator(plain));
    const auto unlock = [] { pool().unlock(); };
    ::pthread_atfork([] { pool().lock(); }, unlock, unlock);
}

void trim_pool() {
    if (!g_plain) return;
    for (void* const block : pool().unused()) g_plain->raw_deallocate(block);
}

}  // namespace mp::twin
