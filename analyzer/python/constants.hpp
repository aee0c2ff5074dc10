#pragma once

// Literals as facts show them, and arithmetic on them.

#include <optional>
#include <string>
#include <string_view>

#include "analyzer/python/syntax.hpp"

namespace mp::lint::python {

// "1e-08", "-inf", "1024": a number in its shortest form; whole numbers without exponent while exact.
std::string number_text(double value, bool whole);

struct Number {
    double value = 0;
    bool whole = false;
};

// A numeric literal ("1_000", "0x10", "1e-8"), or a constant as facts show it.
std::optional<Number> number_of(std::string_view literal);
// `a op b`; nothing for what has no value, and for results that are not numbers.
std::optional<Number> fold(std::string_view op, Number a, Number b);

// The content of a string literal without prefix and quotes; nothing for f-strings and byte strings.
std::optional<std::string> string_content(Node string);

}  // namespace mp::lint::python
