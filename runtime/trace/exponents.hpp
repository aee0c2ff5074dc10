#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mp::trace {

// How many values have each exponent: counts[i] are in bin lowest + i of an ExponentHistogram
// (kernels/numerics/tensor_stats.hpp). The first and the last count are not 0. Empty when nothing was counted.
struct Exponents {
    static constexpr unsigned kBins = 255;

    unsigned lowest = 0;
    std::vector<std::uint64_t> counts;

    // Adds the counts of the bins from `first` on; exact, so the order of calls does not matter.
    void add(unsigned first, std::span<const std::uint64_t> more) {
        while (!more.empty() && more.back() == 0) more = more.first(more.size() - 1);
        for (; !more.empty() && more.front() == 0; ++first) more = more.subspan(1);
        if (more.empty()) return;
        if (counts.empty()) lowest = first;
        if (first < lowest) {
            counts.insert(counts.begin(), lowest - first, 0);
            lowest = first;
        }
        const std::size_t at = first - lowest;
        if (counts.size() < at + more.size()) counts.resize(at + more.size());
        for (std::size_t i = 0; i < more.size(); ++i) counts[at + i] += more[i];
    }
    void add(const Exponents& other) { add(other.lowest, other.counts); }

    friend bool operator==(const Exponents&, const Exponents&) = default;
};

}  // namespace mp::trace
