#pragma once

// Reads the arguments of Python calls: by position or keyword, and as constants.

#include <cstddef>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// The argument passed by this name; nullptr when there is none.
const Operand* keyword_argument(const Call&, std::string_view name);

// The argument that fills this parameter: passed by name, or at this position. Positions count from
// 0 after the receiver of a method. An unpacked argument (*args) ends the positions that are known.
const Operand* argument(const Call&, std::size_t position, std::string_view name);

// Something unknown may be passed: *args or **kwargs.
bool has_unpacked(const Call&);

// "16-mixed" of the constant '16-mixed', "16" of 16; empty when it is not a constant.
std::string_view spelled(const Operand&);
// Whether the operand is the constant True; false for nullptr and for operands that are not constant.
bool is_true(const Operand*);
bool is_false(const Operand*);

}  // namespace mp::lint
