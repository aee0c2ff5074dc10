#include "analyzer/driver/python_scan.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>

#include "kernels/base/files.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kHalf = "half";
constexpr std::array<std::string_view, 41> kWords{"autocast",
                                                  "half",
                                                  "Half",
                                                  "float16",
                                                  "bf16",
                                                  "fp16",
                                                  "caler",
                                                  "tf32",
                                                  "TF32",
                                                  "precision",
                                                  "Precision",
                                                  "float8",
                                                  "fp8",
                                                  "8bit",
                                                  "e4m3",
                                                  "e5m2",
                                                  "apex",
                                                  ".amp",
                                                  " hmp",
                                                  ".hmp",
                                                  "deepspeed.init",
                                                  "from deepspeed",
                                                  "deepspeed as",
                                                  " megatron",
                                                  " accelerate",
                                                  "Accelerator",
                                                  "lightning",
                                                  ".backward(",
                                                  "-mixed",
                                                  "-true",
                                                  "mp-lint",
                                                  "isnan",
                                                  "isinf",
                                                  "isfinite",
                                                  "register_buffer",
                                                  "device_capability",
                                                  ".all_reduce(",
                                                  "set_default",
                                                  "ComputeType",
                                                  "finfo(",
                                                  "-1e"};

std::size_t pair_at(const char* p) {
    return static_cast<unsigned char>(p[0]) * std::size_t{256} + static_cast<unsigned char>(p[1]);
}

// Pairs of bytes with which a word begins: nearly every place is dismissed by one look.
const std::bitset<65536>& first_pairs() {
    static const std::bitset<65536> pairs = [] {
        std::bitset<65536> out;
        for (const std::string_view word : kWords) out.set(pair_at(word.data()));
        return out;
    }();
    return pairs;
}

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

// Not a part of another name: rotate_half() is no cast.
bool stands_alone(std::string_view text, std::size_t at, std::size_t size) {
    return (at == 0 || !is_word(text[at - 1])) && (at + size >= text.size() || !is_word(text[at + size]));
}

bool any_word_in(std::string_view code) {
    const std::bitset<65536>& pairs = first_pairs();
    for (std::size_t i = 0; i + 1 < code.size(); ++i) {
        if (!pairs[pair_at(code.data() + i)]) continue;
        const std::string_view rest = code.substr(i);
        const auto stands = [&](std::string_view word) {
            return rest.starts_with(word) && (word != kHalf || stands_alone(code, i, word.size()));
        };
        if (std::any_of(kWords.begin(), kWords.end(), stands)) return true;
    }
    return false;
}

std::string_view without_indent(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view{} : line.substr(first);
}

// A line that begins with a triple-quoted string: a docstring, or text on lines of its own. The
// position behind its opening quotes, and which they are.
std::size_t text_start(std::string_view line, std::string_view& quotes) {
    const std::size_t quote = line.find_first_not_of("rRuUbB");
    if (quote == std::string_view::npos || quote > 2) return std::string_view::npos;
    quotes = line.substr(quote, 3);
    return quotes == "\"\"\"" || quotes == "'''" ? quote + 3 : std::string_view::npos;
}

// Every word of an import statement: keywords among them do no harm.
void add_words(std::string_view text, std::vector<std::uint64_t>& out) {
    for (std::size_t i = 0; i < text.size();) {
        if (!is_word(text[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < text.size() && is_word(text[end])) ++end;
        out.push_back(hash_bytes(text.substr(i, end - i)));
        i = end;
    }
}

}  // namespace

bool mentions_precision(std::string_view text) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const std::string_view code = without_indent(line);
        std::string_view quotes;
        const std::size_t start = text_start(code, quotes);
        if (start != std::string_view::npos) {
            const auto offset = static_cast<std::size_t>(code.data() - text.data()) + start;
            const std::size_t end = text.find(quotes, offset);
            if (end == std::string_view::npos) return any_word_in(text);  // not what it seemed
            text.remove_prefix(end + 3);
            continue;
        }
        if (!code.starts_with('#') && any_word_in(code)) return true;
        text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
    return false;
}

std::vector<std::uint64_t> imported_names(std::string_view text) {
    std::vector<std::uint64_t> out;
    for (std::size_t at = text.find("import "); at != std::string_view::npos;
         at = text.find("import ", at + 1)) {
        const std::size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
        const std::string_view line = without_indent(text.substr(begin, at - begin));
        if (!line.empty() && !line.starts_with("from ")) continue;
        std::size_t end = text.find('\n', at);
        const std::size_t open = text.substr(at, end - at).find('(');
        if (open != std::string_view::npos) end = text.find(')', at + open);
        end = std::min(end, text.size());
        while (end > 0 && end < text.size() && text[end - 1] == '\\')
            end = std::min(text.find('\n', end + 1), text.size());
        // `from a.b import x`: only x is brought in, unless it is everything.
        const bool all = text.substr(at, end - at).find('*') != std::string_view::npos;
        const std::size_t from = line.empty() || all ? begin : at;
        add_words(text.substr(from, end - from), out);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace mp::lint
