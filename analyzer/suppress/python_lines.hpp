#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mp::lint {

// Where the comment of one line of Python is, and which statement the line belongs to.
struct PythonLine {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t comment = kNone;  // offset of its '#' in the line
    std::size_t first = 0;        // lines of the statement it belongs to, from 1
    std::size_t last = 0;
};

// Joins lines as Python's lexer does: by brackets, strings and backslashes. Accepts any text. A bracket
// that is never closed ends at the next definition.
std::vector<PythonLine> python_lines(std::string_view text);

}  // namespace mp::lint
