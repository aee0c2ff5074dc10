#include "kernels/base/text.hpp"

#include <cstdio>

#include <utf8proc.h>

namespace mp {
namespace {

// Unicode reserves these blocks for characters that are invisible; most code points in them are not assigned yet.
bool is_reserved_for_invisible(std::uint32_t c) {
    return c == 0x2065 || (c >= 0xFFF0 && c <= 0xFFF8) || (c >= 0xE0000 && c <= 0xE0FFF);
}

// Whether the byte belongs to a character that begins before it. The end of that character may be missing.
bool is_inside(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t back) { return static_cast<unsigned char>(text[at - back]); };
    const auto continues = [](unsigned char c) { return (c & 0xC0U) == 0x80U; };
    std::size_t back = 0;
    while (back < at && back < 3 && continues(byte(back))) ++back;
    const unsigned char first = byte(back);
    return back > 0 && first >= 0xC0U && back < (first >= 0xF0U ? 4U : first >= 0xE0U ? 3U : 2U);
}

}  // namespace

CodePoint decode_utf8(std::string_view bytes) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (first < 0x80) return {.value = first};
    utf8proc_int32_t value = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                                     static_cast<utf8proc_ssize_t>(bytes.size()), &value);
    if (length <= 0) return {.value = first, .valid = false};
    return {.value = static_cast<std::uint32_t>(value), .length = static_cast<std::size_t>(length)};
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        out += c.valid ? text.substr(0, c.length) : std::string_view("\xef\xbf\xbd");
        text.remove_prefix(c.length);
    }
    return out;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    while (is_inside(text, bytes)) --bytes;
    return text.substr(0, bytes);
}

std::string_view utf8_suffix(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    std::size_t from = text.size() - bytes;
    while (is_inside(text, from)) ++from;
    return text.substr(from);
}

int display_width(std::uint32_t code_point) {
    return utf8proc_charwidth(static_cast<utf8proc_int32_t>(code_point));
}

bool is_unsafe(std::uint32_t code_point) {
    if (code_point < 0x80) return code_point < 0x20 || code_point == 0x7F;
    const utf8proc_property_t& p = *utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
    switch (p.category) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
            return true;
        case UTF8PROC_CATEGORY_CF:
            return p.boundclass != UTF8PROC_BOUNDCLASS_PREPEND;  // signs before Arabic numbers are visible
        case UTF8PROC_CATEGORY_MN:
            return false;  // variation selectors choose between two visible forms
        case UTF8PROC_CATEGORY_CN:
            return is_reserved_for_invisible(code_point);
        default:
            return p.ignorable;  // letters that are invisible, as U+3164 HANGUL FILLER
    }
}

std::string spelled_out(const CodePoint& c) {
    if (c.valid && c.value == '\n') return "\\n";
    if (c.valid && c.value == '\t') return "\\t";
    if (c.valid && c.value == '\r') return "\\r";
    char out[16];
    const char* format = c.value > 0xFFFF ? "\\U%08x" : c.value > 0xFF ? "\\u%04x" : "\\x%02x";
    std::snprintf(out, sizeof out, format, static_cast<unsigned>(c.value));
    return out;
}

std::string escape_controls(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        if (!c.valid || is_unsafe(c.value)) {
            out += spelled_out(c);
        } else {
            out += text.substr(0, c.length);
        }
        text.remove_prefix(c.length);
    }
    return out;
}

}  // namespace mp
