#pragma once

// Literals in the form that facts use, and arithmetic on them.

#include <optional>
#include <string>
#include <string_view>

#include "analyzer/python/syntax.hpp"

namespace mp::lint::python {

// "1e-08", "-inf", "1024": a number in its shortest form. Integers have no exponent while they are exact.
std::string number_text(double value, bool whole);

struct Number {
    double value = 0;
    bool whole = false;
};

// A numeric literal ("1_000", "0x10", "1e-8"), or a constant in the form that facts use.
std::optional<Number> number_of(std::string_view literal);
// `a op b`; nothing when it is undefined or the result is not a number.
std::optional<Number> fold(std::string_view op, Number a, Number b);

// The content of a string literal without prefix and quotes; nothing for f-strings and byte strings.
std::optional<std::string> string_content(Node string);
// The name of an attribute as getattr() takes it: what varies in an f-string is "{}". Empty when it is not a string.
std::string attribute_text(Node string);

}  // namespace mp::lint::python
