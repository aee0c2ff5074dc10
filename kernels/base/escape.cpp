#include "kernels/base/escape.hpp"

namespace mp {

std::string xml_escaped(std::string_view safe) {
    std::string out;
    out.reserve(safe.size());
    for (const char c : safe) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&apos;";
                break;
            default:
                out += c;
        }
    }
    // U+FFFE and U+FFFF begin with the same two bytes.
    for (std::size_t at = out.find("\xef\xbf"); at != std::string::npos; at = out.find("\xef\xbf", at + 1)) {
        if (at + 2 < out.size() && (out[at + 2] == '\xbe' || out[at + 2] == '\xbf')) out[at + 2] = '\xbd';
    }
    return out;
}

std::string markdown_escaped(std::string_view safe) {
    std::string out;
    out.reserve(safe.size());
    for (const char c : safe) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (c == '@') {
            out += "&#64;";
        } else {
            if (std::string_view("\\`*_{}[]()#+!|~$:/-").find(c) != std::string_view::npos) out += '\\';
            out += c;
        }
    }
    return out;
}

std::string shell_word(std::string_view text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

}  // namespace mp
