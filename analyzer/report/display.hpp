#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/paths.hpp"
#include "kernels/base/text.hpp"

namespace mp::lint {

// One source line made safe, tabs expanded to multiples of 4, with the display column of every byte
// (and one past the last), so that a caret is below the byte on the screen.
struct DisplayLine {
    std::string text;
    std::vector<std::size_t> column_of_byte;
    std::vector<std::size_t> offset_of_byte;  // into text
    std::size_t width = 0;
};
DisplayLine display_line(std::string_view line);

// A rule's page without the marks that make it a test: "// expect: MP401 error" becomes "// <- MP401".
std::string page_for_reading(std::string_view page);

}  // namespace mp::lint
