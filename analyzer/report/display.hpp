#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

// One code point of UTF-8. `length` bytes were read; `valid` is false for a byte that is not UTF-8.
struct CodePoint {
    std::uint32_t value = 0;
    std::size_t length = 1;
    bool valid = true;
};
CodePoint decode_utf8(std::string_view bytes);

// Columns a terminal uses for a code point: 0 for combining marks, 2 for wide characters, else 1.
int display_width(std::uint32_t code_point);

// Text that is safe on a terminal: control characters, bidirectional overrides and invalid bytes
// are spelled out (\x1b, \u202e, \xff).
std::string escape_controls(std::string_view text);

// One source line made safe, tabs expanded to multiples of 4, with the display column of every byte
// (and one past the last), so that a caret stands where the eye sees the byte.
struct DisplayLine {
    std::string text;
    std::vector<std::size_t> column_of_byte;
    std::vector<std::size_t> offset_of_byte;  // into text
    std::size_t width = 0;
};
DisplayLine display_line(std::string_view line);

// A rule's page without the marks that make it a test: "// expect: MP401 error" becomes "// <-
// MP401".
std::string page_for_reading(std::string_view page);

// `path` relative to `base` when it lies below it, else as it is.
std::string relative_path(std::string_view path, std::string_view base);

}  // namespace mp::lint
