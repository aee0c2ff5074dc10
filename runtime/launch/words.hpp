#pragma once

#include <string>
#include <string_view>

#include "kernels/base/suggest.hpp"

namespace mp::launch {

using mp::did_you_mean;

// One line of a terminal: control bytes (C0, DEL, and C1 as UTF-8) become \xNN, so that no name moves the
// cursor or starts a new line.
std::string printable(std::string_view);

// As a shell word: unchanged when it needs no quotes.
std::string shell_word(std::string_view);

}  // namespace mp::launch
