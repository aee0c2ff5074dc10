#pragma once

#include <string>
#include <string_view>

namespace mp::lint::python {

// The text with syntax that the grammar lacks in an older form of the same length, so that places stay: t"..." becomes
// f"...", defaults of type parameters (`def f[T = int]`) become blanks, and `return a, *(b)` becomes `return a,*_(b)`.
// Empty when the text has none of these.
std::string in_older_syntax(std::string_view text);

}  // namespace mp::lint::python
