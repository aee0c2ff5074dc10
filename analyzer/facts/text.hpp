#pragma once

#include <string>
#include <string_view>

#include "analyzer/facts/model.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// The facts of one unit as text (docs/facts_format.md): line-based, diffable, stable order.
// parse_facts(print_facts(u)) is equal to u, field by field.
std::string print_facts(const Unit&);

// Reads what print_facts writes. A malformed line is an Error that names it ("facts:12: ...").
Result<Unit> parse_facts(std::string_view text, std::string_view name = "facts");

}  // namespace mp::lint
