#include "analyzer/driver/suppress.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/config/selection.hpp"

namespace mp::lint {
namespace {

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '*' || c == '?';
}

std::string_view skip_blanks(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    return text;
}

// "MP405, half-norm-stats why": words joined by commas; the first blank without a comma ends them.
std::vector<std::string> word_list(std::string_view text) {
    std::vector<std::string> words;
    while (true) {
        text = skip_blanks(text);
        std::size_t length = 0;
        while (length < text.size() && is_word(text[length])) ++length;
        if (length == 0) return words;
        words.emplace_back(text.substr(0, length));
        text = skip_blanks(text.substr(length));
        if (!text.starts_with(',')) return words;
        text.remove_prefix(1);
    }
}

// Where the first comment of the line begins, outside of string and character literals. Lines
// inside a block comment begin with no mark: there the whole line counts, when it begins with '*'.
std::size_t comment_start(std::string_view line, bool python) {
    if (skip_blanks(line).starts_with('*')) return 0;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote) {
            if (c == '\\') {
                ++i;
            } else if (c == quote) {
                quote = 0;
            }
            continue;
        }
        // 1'000 is a number, not the start of a character.
        const bool separator = c == '\'' && i > 0 && is_word(line[i - 1]) && !python;
        if ((c == '"' || c == '\'') && !separator) {
            quote = c;
        } else if (python ? c == '#'
                          : c == '/' && i + 1 < line.size() &&
                                (line[i + 1] == '/' || line[i + 1] == '*')) {
            return i;
        }
    }
    return std::string_view::npos;
}

void read_disable(std::string_view comment, bool alone, std::vector<Suppression>& out) {
    constexpr std::string_view kMark = "mp-lint:";
    for (std::size_t at = comment.find(kMark); at != std::string_view::npos;
         at = comment.find(kMark, at + 1)) {
        std::string_view rest = skip_blanks(comment.substr(at + kMark.size()));
        bool next = false;
        if (rest.starts_with("disable-next-line=")) {
            next = true;
        } else if (rest.starts_with("disable=")) {
            next = alone;
        } else {
            continue;
        }
        out.push_back({.next_line = next, .words = word_list(rest.substr(rest.find('=') + 1))});
    }
}

void read_nolint(std::string_view comment, std::vector<Suppression>& out) {
    constexpr std::string_view kMark = "NOLINT";
    for (std::size_t at = comment.find(kMark); at != std::string_view::npos;
         at = comment.find(kMark, at + 1)) {
        std::string_view rest = comment.substr(at + kMark.size());
        const bool next = rest.starts_with("NEXTLINE");
        if (next) rest.remove_prefix(std::string_view("NEXTLINE").size());
        if (!rest.starts_with('(')) continue;
        out.push_back({.next_line = next, .words = word_list(rest.substr(1))});
    }
}

void read_noqa(std::string_view comment, std::vector<Suppression>& out) {
    constexpr std::string_view kMark = "noqa:";
    const std::size_t at = comment.find(kMark);
    if (at != std::string_view::npos)
        out.push_back({.words = word_list(comment.substr(at + kMark.size()))});
}

}  // namespace

std::vector<Suppression> suppressions_of(std::string_view line, bool python) {
    std::vector<Suppression> out;
    const std::size_t start = comment_start(line, python);
    if (start == std::string_view::npos) return out;
    const bool alone = skip_blanks(line).size() == line.size() - start || start == 0;
    const std::string_view comment = line.substr(start);
    read_disable(comment, alone, out);
    read_nolint(comment, out);
    if (python) read_noqa(comment, out);
    return out;
}

bool is_suppressed(const Sources& sources, std::string_view file, std::size_t number,
                   const Rule& rule) {
    const bool python = file.ends_with(".py");
    auto silences = [&](std::size_t line, bool next) {
        if (line == 0) return false;
        for (const Suppression& s : suppressions_of(sources.line(file, line), python)) {
            if (s.next_line != next) continue;
            const bool named =
                std::any_of(s.words.begin(), s.words.end(),
                            [&](const std::string& word) { return names_rule(word, rule); });
            if (named) return true;
        }
        return false;
    };
    return silences(number, false) || silences(number - 1, true);
}

}  // namespace mp::lint
