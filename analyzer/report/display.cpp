#include "analyzer/report/display.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace mp::lint {
namespace {

struct Range {
    std::uint32_t first, last;
};

// Unicode 15: East Asian Wide and Fullwidth blocks, and emoji shown as such.
constexpr std::array kWide{
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x2329, 0x232A},   Range{0x23E9, 0x23EC},
    Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},
    Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},
    Range{0xFE10, 0xFE19},   Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},
    Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

constexpr std::array kCombining{Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
                                Range{0x0610, 0x061A}, Range{0x064B, 0x065F}, Range{0x0900, 0x0902},
                                Range{0x093C, 0x093C}, Range{0x0941, 0x0948}, Range{0x1AB0, 0x1AFF},
                                Range{0x1DC0, 0x1DFF}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F},
                                Range{0xFE20, 0xFE2F}};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, std::uint32_t c) {
    return std::any_of(ranges.begin(), ranges.end(), [c](Range r) { return r.first <= c && c <= r.last; });
}

// Shown as escapes: they would move the cursor or reorder what is read (Unicode's "trojan source").
bool is_control(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF ||
           (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

std::string escape(const CodePoint& c) {
    char out[16];
    if (c.valid && c.value == '\n') return "\\n";
    if (c.valid && c.value == '\t') return "\\t";
    if (c.valid && c.value == '\r') return "\\r";
    const char* format = c.value > 0xFFFF ? "\\U%08x" : c.value > 0xFF ? "\\u%04x" : "\\x%02x";
    std::snprintf(out, sizeof out, format, static_cast<unsigned>(c.value));
    return out;
}

constexpr std::size_t kTab = 4;

}  // namespace

CodePoint decode_utf8(std::string_view bytes) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char first = at(0);
    if (first < 0x80) return {.value = first};
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return {.value = first, .valid = false};
    std::uint32_t value = first & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((at(i) & 0xC0) != 0x80) return {.value = first, .valid = false};
        value = value << 6 | (at(i) & 0x3Fu);
    }
    const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (overlong || surrogate || value > 0x10FFFF) return {.value = first, .valid = false};
    return {.value = value, .length = length};
}

int display_width(std::uint32_t c) {
    if (within(kCombining, c)) return 0;
    return within(kWide, c) ? 2 : 1;
}

std::string escape_controls(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        if (!c.valid || is_control(c.value)) {
            out += escape(c);
        } else {
            out += text.substr(0, c.length);
        }
        text.remove_prefix(c.length);
    }
    return out;
}

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
        } else if (!c.valid || is_control(c.value)) {
            const std::string spelled = escape(c);
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

std::string relative_path(std::string_view path, std::string_view base) {
    while (base.size() > 1 && base.ends_with('/')) base.remove_suffix(1);
    if (base.empty() || !path.starts_with(base)) return std::string(path);
    if (base == "/") return std::string(path);
    if (path.size() <= base.size() || path[base.size()] != '/') return std::string(path);
    return std::string(path.substr(base.size() + 1));
}

}  // namespace mp::lint
