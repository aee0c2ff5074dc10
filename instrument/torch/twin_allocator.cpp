#include "instrument/torch/twin_allocator.hpp"

#include <c10/core/Allocator.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "instrument/torch/adapter.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

// A deleter is a plain function, so it reaches the pool through the adapter of the process, which is never destroyed.
template <std::size_t index>
void give_back(void* block) {
    adapter()->pool.give(index, block);
}

template <std::size_t... indices>
constexpr std::array<c10::DeleterFnPtr, sizeof...(indices)> deleters(std::index_sequence<indices...>) {
    return {&give_back<indices>...};
}

// Weights and moments are streamed through in every step: a page of 2 MiB spares 511 faults and as many misses of the
// TLB. Only pages that lie wholly within the block are asked for, so no further memory is used. If the kernel refuses,
// nothing changes.
void ask_for_large_pages(void* block, std::size_t bytes) {
    constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
    const auto begin = (reinterpret_cast<std::uintptr_t>(block) + kPage - 1) & ~(kPage - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(block) + bytes) & ~(kPage - 1);
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// In front of torch's own allocator of the CPU. A block of the pool comes from that allocator, so freeing it with the
// raw deleter does no harm. Torch has changed whether allocate() is const; one of the two overrides.
class TwinAllocator final : public c10::Allocator {
public:
    TwinAllocator(c10::Allocator* plain, Pool& pool) : plain_(plain), pool_(pool) {}

    c10::DataPtr allocate(std::size_t bytes) { return allocate_either(bytes); }
    c10::DataPtr allocate(std::size_t bytes) const { return allocate_either(bytes); }
    c10::DeleterFnPtr raw_deleter() const override { return plain_->raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

private:
    c10::DataPtr allocate_either(std::size_t bytes) const {
        static constexpr auto kDeleters = deleters(std::make_index_sequence<Pool::kSizes>());
        const bool is_twins = thread_state().twin_scopes > 0 && bytes > 0 && bytes <= Pool::largest();
        if (!is_twins) return plain_->allocate(bytes);
        const std::size_t index = Pool::size_index(bytes);
        void* block = pool_.take(index);
        if (!block) {
            block = plain_->raw_allocate(Pool::size_of(index));
            ask_for_large_pages(block, Pool::size_of(index));
        }
        return {block, block, kDeleters[index], c10::Device(c10::DeviceType::CPU)};
    }

    c10::Allocator* plain_;
    Pool& pool_;
};

}  // namespace

void install_twin_allocator(Pool& pool) {
    c10::Allocator* const plain = c10::GetAllocator(c10::DeviceType::CPU);
    if (!plain || !plain->raw_deleter()) return;
    c10::SetAllocator(c10::DeviceType::CPU, new TwinAllocator(plain, pool));
}

}  // namespace mp::twin
