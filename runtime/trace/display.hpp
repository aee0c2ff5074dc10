#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/trace/records.hpp"

// Values as text that is safe to show on a terminal.

namespace mp::trace {

// A text from a recording, safe on a terminal and on one line: unsafe characters (base's is_unsafe) and bytes that are
// not UTF-8 become \n, \x1b or \u{202e}; '\\' is doubled.
std::string shown(std::string_view text);
std::string quoted(std::string_view text);  // shown(), in double quotes; quotes inside it are escaped

// "0x1.8p+0", as Python's float.fromhex and strtod read it; "nan", "inf", "-inf".
std::string hex_of(double);
// The shortest text that reads back as the same double, independent of the program's locale.
std::string decimal_of(double);

std::string_view name_of(Mode);
std::string_view name_of(NoteKind);
std::string_view name_of(TensorKind);
std::string_view name_of(TensorRole);

// sqrt(error_squares / twin_squares); 0/0 is 0.
double relative_l2(const TensorRecord&);

// "1.5 MiB"
std::string size_text(std::uint64_t bytes);

}  // namespace mp::trace
