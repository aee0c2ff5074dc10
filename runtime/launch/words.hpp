#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mp::launch {

// "did you mean 'x'?", or nothing when no candidate is within a third of the word's length (at most three
// edits). Ready to be an Error's hint.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// One line of a terminal: control bytes (C0, DEL, and C1 as UTF-8) become \xNN, so that no name moves the
// cursor or starts a new line.
std::string printable(std::string_view);

// As a shell word: unchanged when it needs no quotes.
std::string shell_word(std::string_view);

}  // namespace mp::launch
