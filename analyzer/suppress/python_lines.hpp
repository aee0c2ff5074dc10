#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mp::lint {

// What a comment needs to know about one line of Python.
struct PythonLine {
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t comment = kNone;  // offset of its '#' in the line
    std::size_t first = 0;        // lines of the statement it belongs to, from 1
    std::size_t last = 0;
};

// Lines of a text as Python's lexer joins them: by brackets, strings and backslashes. Takes any
// text; a bracket that is never closed ends where the next definition begins.
std::vector<PythonLine> python_lines(std::string_view text);

}  // namespace mp::lint
