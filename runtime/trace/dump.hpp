#pragma once

#include <string>

#include "runtime/trace/reader.hpp"

// Recordings as text. Every text of a recording is shown escaped, so that the output is safe on a terminal.

namespace mp::trace {

// Every record, one line each and in the order of the file, floats exact (hex and decimal).
std::string dump_text(const Recording&);

// One screen: who recorded what, how much, and what is wrong with it.
std::string info_text(const Recording&);
std::string info_text(const Run&);

}  // namespace mp::trace
