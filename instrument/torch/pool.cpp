#include "instrument/torch/pool.hpp"

namespace mp::twin {
namespace {

constexpr bool fits(std::size_t bytes) {
    const std::size_t index = Pool::size_index(bytes);
    return Pool::size_of(index) >= bytes && (bytes <= 64 || Pool::size_of(index - 1) < bytes);
}
static_assert(Pool::size_of(Pool::size_index(1)) == 64 && Pool::largest() == std::size_t{1} << 30);
static_assert(fits(64) && fits(65) && fits(72) && fits(73) && fits(1 << 20) && fits((1 << 20) + 1) &&
              fits(123456789));
static_assert(fits(std::size_t{1} << 30) && Pool::size_index(std::size_t{1} << 30) == Pool::kSizes - 1);

}  // namespace

void* Pool::take(std::size_t index) {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[index];
    if (free.empty()) return nullptr;
    void* const block = free.back();
    free.pop_back();
    return block;
}

void Pool::give(std::size_t index, void* block) {
    const std::lock_guard lock(mutex_);
    free_[index].push_back(block);
}

}  // namespace mp::twin
