#include "analyzer/driver/python_scan.hpp"

#include <algorithm>

#include "kernels/base/files.hpp"
#include "kernels/base/sorted.hpp"

namespace mp::lint {
namespace {

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

std::size_t pair_at(const char* p) {
    return static_cast<unsigned char>(p[0]) * std::size_t{256} + static_cast<unsigned char>(p[1]);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool fits(char pattern, char c) { return pattern == '#' ? is_digit(c) : pattern == c; }

// `word` without the marks of its edges, as it occurs in the text.
std::string_view body_of(std::string_view word) {
    if (word.starts_with('<')) word.remove_prefix(1);
    if (word.ends_with('>')) word.remove_suffix(1);
    return word;
}

bool stands_at(std::string_view code, std::size_t at, std::string_view word) {
    const std::string_view body = body_of(word);
    const std::string_view found = code.substr(at, body.size());
    if (!std::equal(body.begin(), body.end(), found.begin(), found.end(), fits)) return false;
    const std::size_t end = at + body.size();
    if (word.front() == '<' && at > 0 && is_word(code[at - 1])) return false;
    return word.back() != '>' || end == code.size() || !is_word(code[end]);
}

std::string_view without_indent(std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view{} : line.substr(first);
}

// If the line begins with a triple-quoted string (a docstring or a block of text), returns the position after the
// opening quotes and sets `quotes` to them. Otherwise returns npos.
std::size_t text_start(std::string_view line, std::string_view& quotes) {
    const std::size_t quote = line.find_first_not_of("rRuUbB");
    if (quote == std::string_view::npos || quote > 2) return std::string_view::npos;
    quotes = line.substr(quote, 3);
    return quotes == "\"\"\"" || quotes == "'''" ? quote + 3 : std::string_view::npos;
}

// Adds every word of an import statement. Keywords among them match no name, so they do no harm.
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

// eval(text) and exec(text), but not model.eval().
bool evaluates(std::string_view text) {
    for (std::size_t at = text.find('('); at != text.npos; at = text.find('(', at + 1)) {
        const std::string_view before = text.substr(0, at);
        if (!before.ends_with("eval") && !before.ends_with("exec")) continue;
        if (at == 4 || (!is_word(text[at - 5]) && text[at - 5] != '.')) return true;
    }
    return false;
}

}  // namespace

Seeds::Seeds(Rules rules) {
    for (const Rule* rule : rules)
        for (const TriggerWords group : rule->triggers.groups())
            words_.insert(words_.end(), group.begin(), group.end());
    sort_unique(words_);
    for (std::size_t i = 0; i < words_.size(); ++i) {
        const std::string_view body = body_of(words_[i]);
        for (int first = 0; first < 256; ++first) {
            if (!fits(body[0], static_cast<char>(first))) continue;
            by_first_[static_cast<std::size_t>(first)].push_back(static_cast<std::uint16_t>(i));
            for (int second = 0; second < 256; ++second)
                if (fits(body[1], static_cast<char>(second)))
                    pairs_.set(static_cast<std::size_t>(first) * 256 + static_cast<std::size_t>(second));
        }
    }
}

bool Seeds::any_in(std::string_view code) const {
    for (std::size_t i = 0; i + 1 < code.size(); ++i) {
        if (!pairs_[pair_at(code.data() + i)]) continue;
        const auto stands = [&](std::uint16_t word) { return stands_at(code, i, words_[word]); };
        if (std::ranges::any_of(by_first_[static_cast<unsigned char>(code[i])], stands)) return true;
    }
    return false;
}

bool Seeds::any_in_code(std::string_view text) const {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        const std::string_view code = without_indent(line);
        std::string_view quotes;
        const std::size_t start = text_start(code, quotes);
        if (start != std::string_view::npos) {
            const auto offset = static_cast<std::size_t>(code.data() - text.data()) + start;
            const std::size_t end = text.find(quotes, offset);
            if (end == std::string_view::npos) return any_in(text);  // not a string after all
            text.remove_prefix(end + 3);
            continue;
        }
        if (!code.starts_with('#') && any_in(code)) return true;
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
        // `from a.b import x` imports only x, unless x is `*`.
        const bool all = text.substr(at, end - at).find('*') != std::string_view::npos;
        const std::size_t from = line.empty() || all ? begin : at;
        add_words(text.substr(from, end - from), out);
    }
    if (evaluates(text)) out.push_back(hash_bytes(kEvaluates));
    sort_unique(out);
    return out;
}

}  // namespace mp::lint
