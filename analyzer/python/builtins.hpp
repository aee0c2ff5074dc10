#pragma once

// Names of Python's builtins and standard library.

#include <string_view>

#include "analyzer/python/library/dotted.hpp"

namespace mp::lint::python {

bool is_builtin(std::string_view name);  // "len", "float", "super"
// Whether a first component of a dotted name belongs to Python's own library: "os", "contextlib".
bool is_standard(std::string_view root);

inline bool is_capitalised(std::string_view name) {
    const std::size_t first = name.find_first_not_of('_');
    return first != std::string_view::npos && name[first] >= 'A' && name[first] <= 'Z';
}

}  // namespace mp::lint::python
