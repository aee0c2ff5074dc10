#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mp::lint {

// Levenshtein distance in bytes, ASCII case ignored.
std::size_t edit_distance(std::string_view, std::string_view);

// The candidate a mistyped word most likely means; empty when none is close (a third of its length,
// at most 3 edits).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// " did you mean 'x'?" or nothing: ready to be an Error's hint.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace mp::lint
