#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mp {

// Bytes inserted, dropped or replaced, or two neighbours exchanged ("rnu"): one each. ASCII case is ignored.
// The optimal string alignment distance: Damerau, "A technique for computer detection and correction of
// spelling errors", 1964.
std::size_t edit_distance(std::string_view, std::string_view);

// The candidate that a mistyped word most likely means, the first of equals; empty when none is close: a third
// of the word's length, at least one edit, at most three. Else the only one that begins with the word, which has
// three letters or more: "--out" for "--output".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean 'x'?", or nothing: ready to be an Error's hint.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace mp
