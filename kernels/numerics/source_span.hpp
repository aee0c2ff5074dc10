#pragma once

#include <cstdint>

#include "kernels/base/symbol.hpp"

namespace mp {

// A range of source text. Lines and columns count from 1 (columns in bytes); 0 means unknown.
// The end is exclusive in columns: [column, end_column) on one line.
struct SourceSpan {
    Symbol file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t end_line = 0;
    std::uint32_t end_column = 0;

    bool known() const { return line != 0; }
    friend auto operator<=>(const SourceSpan&, const SourceSpan&) = default;
};

// "file:line:column", the form that compilers and editors use; "<unknown>" when there is no line.
inline std::string to_string(const SourceSpan& s) {
    if (!s.known()) return "<unknown>";
    return std::string(s.file.str()) + ":" + std::to_string(s.line) + ":" + std::to_string(s.column);
}

}  // namespace mp
