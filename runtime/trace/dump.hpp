#pragma once

#include <string>

#include "runtime/trace/reader.hpp"

// Recordings as text. Every text of a recording is escaped, so that the output is safe on a terminal.

namespace mp::trace {

// One line per record, in the order of the file. Floats are exact, in hex and decimal.
std::string dump_text(const Recording&);

}  // namespace mp::trace
