#pragma once

// Character classes of facts text, shared by printer and parser.

#include <array>
#include <string_view>

namespace mp::lint {

// Characters a value may have without quotes. '=' would look like a key; brackets and commas belong
// to lists; anything outside printable ASCII is quoted so that a terminal or a diff shows it whole.
inline constexpr std::array<bool, 256> kBare = [] {
    std::array<bool, 256> table{};
    for (int c = '!'; c <= '~'; ++c) table[static_cast<std::size_t>(c)] = true;
    for (const char c : std::string_view("\"\\=,[]{}")) table[static_cast<unsigned char>(c)] = false;
    return table;
}();

constexpr bool is_bare(char c) { return kBare[static_cast<unsigned char>(c)]; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_key(char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.'; }

// A bare word that the parser could take for "line:column" or "file:line:column".
constexpr bool resembles_place(std::string_view word) {
    if (!word.empty() && is_digit(word[0])) return true;
    for (std::size_t i = 0; i + 1 < word.size(); ++i)
        if (word[i] == ':' && is_digit(word[i + 1])) return true;
    return false;
}

}  // namespace mp::lint
