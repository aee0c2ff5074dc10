#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// UTF-8, and what is safe to show. The tables are utf8proc's.

namespace mp {

// One code point of UTF-8. `length` bytes were read; `valid` is false for a byte that is not UTF-8, whose number is
// then the value.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t length = 1;
    bool valid = true;
};
CodePoint decode_utf8(std::string_view bytes);  // not empty

// The same text as valid UTF-8: each byte that is not becomes U+FFFD.
std::string valid_utf8(std::string_view text);

// The longest start and the longest end of the text that have at most so many bytes and cut no character of UTF-8 in
// two. Bytes that are not UTF-8 are cut anywhere.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes);
std::string_view utf8_suffix(std::string_view text, std::size_t bytes);

// Columns that a terminal uses for a code point: 0 for combining marks, 2 for wide characters, else 1.
int display_width(std::uint32_t code_point);

// True for code points that must not reach a terminal or a reviewer as they are, because they move the cursor,
// reorder the text around them or are invisible: C0, C1, line and paragraph separators, bidirectional controls, zero
// width characters, the byte order mark, interlinear annotations, tags, fillers. Variation selectors are safe.
bool is_unsafe(std::uint32_t code_point);

// Text that is safe on one line of a terminal: unsafe code points and bytes that are not UTF-8 are spelled out
// (\n, \x1b, \u202e, \U000e0041, \xff).
std::string escape_controls(std::string_view text);

// How escape_controls() spells one code point.
std::string spelled_out(const CodePoint&);

}  // namespace mp
