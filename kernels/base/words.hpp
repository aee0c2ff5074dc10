#pragma once

// Takes lines and words off the front of the tables that are embedded as text.

#include <string_view>

namespace mp {

// Without its end; `text` must not be empty.
inline std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
    return line;
}

// Empty at the end of the line.
inline std::string_view next_word(std::string_view& line) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return line = {};
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    return word;
}

}  // namespace mp
