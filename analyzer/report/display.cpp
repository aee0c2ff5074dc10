#include "analyzer/report/display.hpp"

#include <algorithm>

namespace mp::lint {
namespace {

constexpr std::size_t kTab = 4;

}  // namespace

DisplayLine display_line(std::string_view line) {
    DisplayLine out;
    auto map = [&out](std::size_t bytes) {
        out.column_of_byte.insert(out.column_of_byte.end(), bytes, out.width);
        out.offset_of_byte.insert(out.offset_of_byte.end(), bytes, out.text.size());
    };
    while (!line.empty()) {
        const CodePoint c = decode_utf8(line);
        map(c.length);
        if (c.valid && c.value == '\t') {
            const std::size_t blanks = kTab - out.width % kTab;
            out.text.append(blanks, ' ');
            out.width += blanks;
        } else if (!c.valid || is_unsafe(c.value)) {
            const std::string spelled = spelled_out(c);
            out.text += spelled;
            out.width += spelled.size();
        } else {
            out.text += line.substr(0, c.length);
            out.width += static_cast<std::size_t>(display_width(c.value));
        }
        line.remove_prefix(c.length);
    }
    map(1);
    return out;
}

std::string page_for_reading(std::string_view page) {
    constexpr std::string_view kMark = "expect: ";
    std::string out;
    while (!page.empty()) {
        const std::size_t at = page.find(kMark);
        out += page.substr(0, at);
        if (at == std::string_view::npos) break;
        page.remove_prefix(at + kMark.size());
        const std::size_t word = page.find_first_of(" \n");
        out += "<- " + std::string(page.substr(0, word));
        page.remove_prefix(std::min(page.find('\n'), page.size()));
    }
    return out;
}

}  // namespace mp::lint
