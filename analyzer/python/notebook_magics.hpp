#pragma once

#include <cstddef>
#include <string>

namespace mp::lint::python {

// Blanks what IPython adds to Python in text[begin, end), the code of one cell: lines become "..."
// of the same length, so places stay where they are. A cell of another language (%%bash) is blanked
// whole.
void blank_magics(std::string& text, std::size_t begin, std::size_t end);

}  // namespace mp::lint::python
