#pragma once

#include <algorithm>
#include <vector>

namespace mp {

// Sorts, and keeps one of equal values.
template <class T>
void sort_unique(std::vector<T>& values) {
    std::ranges::sort(values);
    values.erase(std::ranges::unique(values).begin(), values.end());
}

}  // namespace mp
