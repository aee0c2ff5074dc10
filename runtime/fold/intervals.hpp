#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace mp::trace {

// A set of numbers, stored as first -> last of each gapless stretch.
using Intervals = std::map<std::int64_t, std::int64_t>;

inline void insert(Intervals& set, std::int64_t first, std::int64_t last) {
    auto at = set.upper_bound(first);
    if (at != set.begin() && std::prev(at)->second >= first - 1) {
        --at;
        if (at->second >= last) return;
        first = at->first;
        at = set.erase(at);
    }
    while (at != set.end() && at->first - 1 <= last) {
        if (at->second > last) last = at->second;
        at = set.erase(at);
    }
    set.emplace_hint(at, first, last);
}

inline bool contains(const Intervals& set, std::int64_t value) {
    const auto at = set.upper_bound(value);
    return at != set.begin() && std::prev(at)->second >= value;
}

inline std::int64_t size_of(const Intervals& set) {
    std::int64_t size = 0;
    for (const auto& [first, last] : set) size += last - first + 1;
    return size;
}

}  // namespace mp::trace
