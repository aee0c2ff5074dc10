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

// Calls take(section, line) for each line that is not a comment. A line "[section]" begins a section.
template <typename Take>
void for_each_table_line(std::string_view text, Take take) {
    std::string_view section;
    while (!text.empty()) {
        const std::string_view line = next_line(text);
        if (line.empty() || line[0] == '#') continue;
        if (line[0] == '[')
            section = line.substr(1, line.find(']') - 1);
        else
            take(section, line);
    }
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
