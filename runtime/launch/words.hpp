#pragma once

#include <string>
#include <string_view>

#include "kernels/base/escape.hpp"
#include "kernels/base/suggest.hpp"

namespace mp::launch {

using mp::did_you_mean;
using mp::shell_word;

// One line of a terminal: the bytes of unsafe characters (base's is_unsafe) and bytes that are not UTF-8 become
// \xNN, so that no name moves the cursor, starts a new line or reorders the text. Unlike escape_controls() it can be
// undone byte for byte: the text is mostly a name of a file.
std::string printable(std::string_view);

}  // namespace mp::launch
