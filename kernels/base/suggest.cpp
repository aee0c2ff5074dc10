#include "kernels/base/suggest.hpp"

#include <algorithm>
#include <vector>

namespace mp {
namespace {

// A pasted file is no typing error; past this length nothing is compared.
constexpr std::size_t kLongestWord = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(char a, char b) { return lower(a) == lower(b); }

// The only candidate that begins with a word; empty when there is none, or more than one.
std::string_view completed(std::string_view word, std::span<const std::string_view> candidates) {
    const auto letters = std::ranges::count_if(word, [](char c) { return c != '-'; });
    const auto begins = [&](std::string_view candidate) { return candidate.starts_with(word); };
    if (letters < 3 || std::ranges::count_if(candidates, begins) != 1) return {};
    return *std::ranges::find_if(candidates, begins);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            const bool exchanged = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
            if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
    if (word.empty() || word.size() > kLongestWord) return {};
    std::size_t best = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
    std::string_view found;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance >= best) continue;
        best = distance;
        found = candidate;
    }
    return found.empty() ? completed(word, candidates) : found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    const std::string_view found = nearest(word, candidates);
    return found.empty() ? "" : "did you mean '" + std::string(found) + "'?";
}

}  // namespace mp
