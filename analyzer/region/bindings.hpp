#pragma once

// Calls from Python to C++: functions that a pybind11 module or a torch library exports. Such a
// call gets the C++ function as its callee, so that both languages are linked into one program.

#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void link_bindings(std::vector<Unit>& units);

// An op registered by m.def("op(...)") or m.impl("op", function) in a TORCH_LIBRARY function.
struct RegisteredOp {
    std::string_view space;  // "ns"
    std::string_view key;    // "CUDA", "Autocast"; empty in TORCH_LIBRARY and TORCH_LIBRARY_FRAGMENT
    std::string_view name;   // "op"
};
std::optional<RegisteredOp> registered_op(const Function&, const Call&);

}  // namespace mp::lint
