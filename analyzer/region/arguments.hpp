#pragma once

#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

bool is_python(const Function&);

// The text after the last "::" or ".".
std::string_view last_name(std::string_view qualified);

// `f.__enter__` and `f.__exit__`, where `f` is a class of context managers, a library's or a generator.
bool is_enter(const Call&);
bool is_exit(const Call&);

// What the call passes for a parameter of the function it reaches; nullptr when a default stands in, or
// when unpacked arguments hide it.
const Operand* argument_for(const Call&, const Function& callee, std::int32_t param);

}  // namespace mp::lint
