#pragma once

// Where Python calls C++: functions that a pybind11 module or a torch library exports. The calls get the
// C++ function as their callee, so that both languages are one program.

#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void link_bindings(std::vector<Unit>& units);

// What m.def("op(...)") and m.impl("op", function) in a TORCH_LIBRARY function of C++ register.
struct RegisteredOp {
    std::string_view space;  // "ns"
    std::string_view key;    // "CUDA", "Autocast"; empty in TORCH_LIBRARY and TORCH_LIBRARY_FRAGMENT
    std::string_view name;   // "op"
};
std::optional<RegisteredOp> registered_op(const Function&, const Call&);

}  // namespace mp::lint
