#include "instrument/cuda/memory_names.hpp"

#include <iterator>

namespace mp::raw {
namespace {

std::uintptr_t address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

void MemoryNames::set(const void* begin, std::uint64_t bytes, std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (!begin || bytes == 0 || regions_.size() >= kMost) return;
    regions_[address(begin)] = {bytes, std::string(name)};
}

void MemoryNames::resize(const void* begin, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(address(begin));
    if (found != regions_.end()) found->second.bytes = bytes;
}

void MemoryNames::name(const void* begin, std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(address(begin));
    if (found != regions_.end()) found->second.name = name;
}

void MemoryNames::end(const void* begin) {
    const std::lock_guard lock(mutex_);
    regions_.erase(address(begin));
}

std::string MemoryNames::of(const void* at) const {
    const std::lock_guard lock(mutex_);
    auto region = regions_.upper_bound(address(at));
    for (int i = 0; i < kMostAround && region != regions_.begin(); ++i) {
        --region;
        const std::uint64_t offset = address(at) - region->first;
        if (offset >= region->second.bytes || region->second.name.empty()) continue;
        const std::string name = "'" + region->second.name + "'";
        return offset == 0 ? name : name + ", byte " + std::to_string(offset);
    }
    return {};
}

}  // namespace mp::raw
