#include "runtime/launch/words.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mp::launch {
namespace {

// A pasted file is no typing error; past this length nothing is compared.
constexpr std::size_t kLongestWord = 64;

// Letters inserted, dropped, replaced, or two neighbours exchanged ("rnu"): one each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
    }
    return last[b.size()];
}

void append_escaped(unsigned char byte, std::string& out) {
    static constexpr char kHex[] = "0123456789abcdef";
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    if (word.empty() || word.size() > kLongestWord) return {};
    std::size_t best = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
    std::string_view found;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance >= best) continue;
        best = distance;
        found = candidate;
    }
    return found.empty() ? "" : "did you mean '" + std::string(found) + "'?";
}

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
