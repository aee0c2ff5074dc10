#pragma once

// Facts of a small source as lines, without what most tests do not look at: places, spellings, and what names refer to.

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {

// The unit of a module "m" in the file "m.py".
Unit unit_of(std::string_view source);

// The lines below `func m.<function>`: calls, blocks, settings ... without positions, `text=` and `span=`.
std::vector<std::string> facts_of(std::string_view source, std::string_view function = "<module>");

// Only the calls, and of each only name and what its arguments are: "torch.relu(x:fp16 tensor)". An
// argument that is the result of call 3 is shown as "#3".
std::vector<std::string> calls_of(std::string_view source, std::string_view function = "<module>");

// Names of the functions of the unit, in their order.
std::vector<std::string> functions_of(std::string_view source);

}  // namespace mp::lint::python
