#include "runtime/launch/words.hpp"

#include <cstddef>

namespace mp::launch {
namespace {

void append_escaped(unsigned char byte, std::string& out) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
        if (byte < 0x20 || byte == 0x7f) {
            append_escaped(byte, out);
        } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
            append_escaped(byte, out);
            append_escaped(static_cast<unsigned char>(next), out);
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::string shell_word(std::string_view text) {
    static constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

}  // namespace mp::launch
