#include "analyzer/driver/named_devices.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "kernels/base/files.hpp"

namespace mp::lint {
namespace {

// Compute capability 8.0 and later.
constexpr std::array<std::string_view, 16> kWithBf16{"A100",  "A800",  "A40",  "A30",   "A10G", "A6000",
                                                     "A5000", "L40",   "L40S", "H100",  "H200", "H800",
                                                     "H20",   "GH200", "B200", "MI300X"};
// Earlier ones, and a service that lends them.
constexpr std::array<std::string_view, 14> kOlder{"V100",  "T4",    "P100",   "P40",    "K80",
                                                  "M40",   "GTX",   "2080Ti", "1080Ti", "TITAN",
                                                  "Titan", "Colab", "colab",  "Quadro"};

constexpr std::size_t kShortest = 2, kLongest = 6;

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

struct Named {
    bool with_bf16 = false, older = false;
};

// "A100" in 8xA100-SXM and A100_80GB, not in DATA100 or A1000: the end of a word, from its start or an x on.
void look_at(std::string_view word, Named& named) {
    for (std::size_t size = kShortest; size <= std::min(kLongest, word.size()); ++size) {
        const std::string_view name = word.substr(word.size() - size);
        const char before = size == word.size() ? 'x' : word[word.size() - size - 1];
        if (before != 'x' && before != 'X') continue;
        named.with_bf16 = named.with_bf16 || std::ranges::find(kWithBf16, name) != kWithBf16.end();
        named.older = named.older || std::ranges::find(kOlder, name) != kOlder.end();
    }
}

// Notebooks hold pictures: one pass looks for all names.
Named names_in(std::string_view text) {
    Named named;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_in_word(text[end])) ++end;
        look_at(text.substr(at, end - at), named);
        at = end + 1;
    }
    return named;
}

// RTX 4090, RTX3060, RTX-2080: whether the text names one of a series from `first` to `last`. RTX 4000 is older.
bool has_rtx(std::string_view text, char first, char last) {
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    for (std::size_t at = text.find("RTX"); at != text.npos; at = text.find("RTX", at + 1)) {
        std::string_view number = text.substr(at + 3);
        if (!number.empty() && !is_digit(number[0])) number.remove_prefix(1);
        number = number.substr(0, 4);
        const bool is_card = number.size() == 4 && std::ranges::all_of(number, is_digit) && number[2] != '0';
        if (is_card && first <= number[0] && number[0] <= last) return true;
    }
    return false;
}

}  // namespace

std::vector<std::uint64_t> named_devices(std::string_view text) {
    const Named named = names_in(text);
    std::vector<std::uint64_t> marks;
    if (named.with_bf16 || has_rtx(text, '3', '9')) marks.push_back(hash_bytes(kNamesDeviceWithBf16));
    if (named.older || has_rtx(text, '2', '2')) marks.push_back(hash_bytes(kNamesOlderDevice));
    return marks;
}

}  // namespace mp::lint
