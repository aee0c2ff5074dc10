#pragma once

#include <cstddef>
#include <string>

namespace mp::lint::python {

// Replaces IPython syntax in text[begin, end), the code of one cell: lines become "..." of the same length,
// so that places do not change. A cell of another language (%%bash) is replaced as a whole.
void blank_magics(std::string& text, std::size_t begin, std::size_t end);

}  // namespace mp::lint::python
