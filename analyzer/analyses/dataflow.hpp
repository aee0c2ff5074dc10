#pragma once

// The sources and uses of a value in a function, over the calls that facts connect by their operands.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

std::int32_t index_of(const Function&, const Call&);

// view, detach, contiguous, cuda: the elements stay as they are.
bool only_moves(const Call&);
// The call that made the value, looked for through calls that only move or reshape it: view, detach,
// contiguous, cuda. nullptr when that is not known.
const Call* producer(const Function&, const Operand&);

// The value before calls that only move or reshape it: `self.table` of `self.table[None].expand(2, -1)`.
const Operand& moved_from(const Function&, const Operand&);

// Whether the value, or one that it was computed from, satisfies the test. The search is bounded.
using OperandTest = std::function<bool(const Operand&)>;
bool derives_from(const Function&, const Operand&, const OperandTest&);
// The nearest call for which the test holds, on the way from the value to its origins.
using CallTest = std::function<bool(const Call&)>;
const Call* origin(const Function&, const Operand&, const CallTest&);

// x[i]
bool indexes(const Call&);
// ... with one index: the arguments are the container and the index.
bool reads_entry(const Call&);

// torch.randn(4, 18)
bool makes_random_numbers(const Call&);

// Whether the parameters are those of a model that peft has wrapped: what is trained are adapters, which are fp32
// whatever the model is.
bool are_of_adapters(const Function&, const Operand& parameters);

// A call that takes the result of this one; nullptr when there is none for which the test holds.
const Call* consumer(const Function&, const Call&, const CallTest&);

// What to write over the span of an argument, which holds its keyword too: "dtype=torch.float32".
std::string rewritten(const Operand& argument, std::string_view value);

// The same variable or parameter.
bool same_value(const Operand&, const Operand&);

}  // namespace mp::lint
