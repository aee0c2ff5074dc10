#pragma once

// The lines of policies/ops.txt, for what reads it: op.cpp the spellings, op_traits.cpp the traits.

#include <string_view>

#include "kernels/base/words.hpp"

namespace mp {

struct OpLine {
    std::string_view section;  // "aten"
    std::string_view name;     // canonical
    std::string_view spellings;
    std::string_view traits;
};

// "name: spelling spelling | trait trait"; spellings and traits may be missing.
inline OpLine parse_op_line(std::string_view line, std::string_view section) {
    OpLine out;
    out.section = section;
    if (const std::size_t bar = line.find(" | "); bar != std::string_view::npos) {
        out.traits = line.substr(bar + 3);
        line = line.substr(0, bar);
    }
    const std::size_t colon = line.find(": ");
    out.name = line.substr(0, colon);
    if (colon != std::string_view::npos) out.spellings = line.substr(colon + 2);
    return out;
}

// Calls take(OpLine) for each op of the table.
template <typename Take>
void for_each_op_line(std::string_view text, Take take) {
    for_each_table_line(
        text, [&](std::string_view section, std::string_view line) { take(parse_op_line(line, section)); });
}

}  // namespace mp
