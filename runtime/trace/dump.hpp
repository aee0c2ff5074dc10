#pragma once

#include <string>

#include "runtime/trace/reader.hpp"

// Recordings as text. Every text of a recording is shown escaped, so that the output is safe on a terminal.

namespace mp::trace {

// Every record, one line each and in the order of the file, floats exact (hex and decimal).
std::string dump_text(const Recording&);

}  // namespace mp::trace
