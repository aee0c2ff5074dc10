#include "analyzer/suppress/suppress.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/suppress/python_lines.hpp"

namespace mp::lint {
namespace {

using Scope = Suppression::Scope;

constexpr std::array<std::string_view, 3> kMarks{"mp-lint:", "NOLINT", "noqa:"};

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '*' || c == '?';
}

std::string_view skip_blanks(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    return text;
}

// "MP405, half-norm-stats why": words joined by commas; the first blank without a comma ends them. `text`
// becomes the rest.
std::vector<std::string> take_words(std::string_view& text) {
    std::vector<std::string> words;
    while (true) {
        text = skip_blanks(text);
        std::size_t length = 0;
        while (length < text.size() && is_word(text[length])) ++length;
        if (length == 0) return words;
        words.emplace_back(text.substr(0, length));
        text.remove_prefix(length);
        const std::string_view next = skip_blanks(text);
        if (!next.starts_with(',')) return words;
        text = next.substr(1);
    }
}

// Start of the first comment in a line of C++, outside of string and character literals. A line inside a
// block comment has no mark: it counts as a comment when it begins with '*'.
std::size_t comment_start(std::string_view line) {
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
        // The quote in 1'000 is a separator, not the start of a character literal.
        const bool separator = c == '\'' && i > 0 && is_word(line[i - 1]);
        if ((c == '"' || c == '\'') && !separator) {
            quote = c;
        } else if (c == '/' && i + 1 < line.size() && (line[i + 1] == '/' || line[i + 1] == '*')) {
            return i;
        }
    }
    return std::string_view::npos;
}

// Whether a reason has content. Punctuation and the end of a block comment do not count.
bool says_something(std::string_view text) {
    return std::ranges::any_of(text, [](char c) {
        return (is_word(c) && c != '-' && c != '_' && c != '*' && c != '?') ||
               static_cast<unsigned char>(c) >= 0x80;
    });
}

// Start of the next comment or suppression: text after it is not a reason for this one.
std::size_t next_mark(std::string_view text) {
    std::size_t at = std::min(text.find('#'), text.find("//"));
    for (const std::string_view mark : kMarks) at = std::min(at, text.find(mark));
    return std::min(at, text.size());
}

std::string_view last_comment(std::string_view text) {
    for (const std::string_view mark : {"#", "//"}) {
        const std::size_t at = text.rfind(mark);
        if (at != std::string_view::npos) text.remove_prefix(at + mark.size());
    }
    return text;
}

struct Verb {
    std::string_view text;
    Scope scope;
};
constexpr std::array<Verb, 6> kVerbs{{{"disable-next-line=", Scope::next_line},
                                      {"disable-begin=", Scope::begin},
                                      {"disable-end=", Scope::end},
                                      {"disable-file=", Scope::file},
                                      {"disable=", Scope::line},
                                      {"disable-end", Scope::end}}};

// Parses the text after "mp-lint:". `rest` becomes the text after the words.
Suppression own(std::string_view& rest) {
    rest = skip_blanks(rest);
    for (const Verb& verb : kVerbs) {
        if (!rest.starts_with(verb.text)) continue;
        rest.remove_prefix(verb.text.size());
        Suppression s{.scope = verb.scope};
        if (verb.text.ends_with('=')) s.words = take_words(rest);
        if (s.words.empty() && verb.scope != Scope::end) s.scope = Scope::unknown;
        return s;
    }
    // "mp-lint: disable(MP405)" is a mistyped suppression; "mp-lint: see the manual" is not one.
    return {.scope = rest.starts_with("disable") ? Scope::unknown : Scope::end, .ours = false};
}

Suppression nolint(std::string_view& rest) {
    const bool next = rest.starts_with("NEXTLINE");
    if (next) rest.remove_prefix(std::string_view("NEXTLINE").size());
    Suppression s{.scope = next ? Scope::next_line : Scope::line, .ours = false};
    if (!rest.starts_with('(')) return s;
    rest.remove_prefix(1);
    s.words = take_words(rest);
    rest.remove_prefix(std::min(rest.find(')'), rest.size()));
    return s;
}

// Parses the suppression that begins with a mark; `rest` becomes the text after it in the comment.
Suppression parse(std::string_view mark, std::string_view& rest) {
    if (mark == "mp-lint:") return own(rest);
    if (mark == "NOLINT") return nolint(rest);
    Suppression s{.scope = Scope::line, .ours = false};
    s.words = take_words(rest);
    return s;
}

bool has_python_comments(std::string_view path) { return path.ends_with(".py") || path.ends_with(".pyi"); }

bool any_names(const Suppression& s, const Rule& rule) {
    return std::ranges::any_of(s.words, [&](const std::string& word) { return names_rule(word, rule); });
}

// The code of a file of Python, line by line as `Sources` counts them.
std::string python_text(std::string_view path, const Sources& sources) {
    std::string out;
    for (const CellLine& line : sources.cells(path)) out.append(line.text).append("\n");
    if (!out.empty() || !has_python_comments(path)) return out;
    for (std::size_t n = 1; n <= sources.line_count(path); ++n)
        out.append(n > 1 ? "\n" : "").append(sources.line(path, n));
    return out;
}

}  // namespace

std::vector<Suppression> suppressions_of(std::string_view line, std::size_t comment, bool python) {
    std::vector<Suppression> out;
    const bool alone = skip_blanks(line).size() == line.size() - comment || comment == 0;
    std::size_t said = comment;  // end of the previous suppression in the line
    while (true) {
        std::size_t at = std::string_view::npos;
        std::string_view mark;
        for (const std::string_view candidate : kMarks) {
            const std::size_t found = line.find(candidate, said);
            if (found < at && (python || candidate != "noqa:")) {
                at = found;
                mark = candidate;
            }
        }
        if (at == std::string_view::npos) return out;
        std::string_view rest = line.substr(at + mark.size());
        Suppression s = parse(mark, rest);
        const std::size_t end = line.size() - rest.size();
        s.reason = says_something(rest.substr(0, next_mark(rest))) ||
                   says_something(last_comment(line.substr(said, at - said)));
        s.column = at + 1;
        s.length = end - at;
        if (s.scope == Scope::line && s.ours && alone) s.scope = Scope::next_line;
        said = end;
        if (!s.words.empty() || s.ours || s.scope == Scope::unknown) out.push_back(std::move(s));
    }
}

namespace {

// "F401", "E501", "PLR0913": a code of another tool. No rule of mp-lint has such a name.
bool is_foreign_code(std::string_view word) {
    const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto number = std::ranges::find_if_not(word, is_upper);
    return number != word.begin() && number != word.end() && !word.starts_with("MP") &&
           std::all_of(number, word.end(), is_digit);
}

// A noqa comment for other linters. Most large files have one.
bool is_about_others(std::string_view mark, std::string_view rest) {
    if (mark != "noqa:") return false;
    const std::vector<std::string> words = take_words(rest);
    return !words.empty() && std::ranges::all_of(words, is_foreign_code);
}

}  // namespace

bool mentions_suppression(std::string_view text) {
    return std::ranges::any_of(kMarks, [text](std::string_view mark) {
        for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1))
            if (!is_about_others(mark, text.substr(at + mark.size()))) return true;
        return false;
    });
}

namespace {

// Reads the suppressions of one file, line by line.
class FileReader {
public:
    FileReader(std::string_view path, const Sources& sources)
        : path_(path),
          sources_(sources),
          cells_(sources.cells(path)),
          count_(path.ends_with(".ipynb") ? cells_.size() : sources.line_count(path)),
          is_cxx_(!has_python_comments(path) && !path.ends_with(".ipynb")),
          python_(is_cxx_ ? std::vector<PythonLine>{} : python_lines(python_text(path, sources))) {}

    std::vector<Suppression> run() {
        for (std::size_t n = 1; n <= count_; ++n) read(n, line(n), comment_of(n));
        for (Suppression& s : out_) {
            if (s.scope == Scope::begin && !s.closed) s.to = count_;
        }
        return std::move(out_);
    }

    const std::vector<PythonLine>& python() const { return python_; }

private:
    std::string_view line(std::size_t n) const {
        return cells_.empty() ? sources_.line(path_, n) : std::string_view(cells_[n - 1].text);
    }

    std::size_t comment_of(std::size_t n) const {
        return is_cxx_ ? comment_start(line(n)) : python_[n - 1].comment;
    }

    void read(std::size_t n, std::string_view line, std::size_t comment) {
        if (comment == std::string_view::npos) return;
        for (Suppression& s : suppressions_of(line, comment, !is_cxx_)) {
            s.line = n;
            place(s);
            out_.push_back(std::move(s));
        }
    }

    void place(Suppression& s) {
        switch (s.scope) {
            case Scope::line:
                s.from = s.to = s.line;
                break;
            case Scope::next_line:
                s.from = s.to = next_code(s.line);
                break;
            case Scope::begin:
                s.from = s.line;
                break;
            case Scope::file:
                s.from = 1, s.to = count_;
                break;
            case Scope::end:
                close(s);
                break;
            case Scope::unknown:
                break;
        }
    }

    // Closes the last open begin; if `end` has words, the last one with the same words.
    void close(Suppression& end) {
        for (auto begin = out_.rbegin(); begin != out_.rend(); ++begin) {
            if (begin->scope != Scope::begin || begin->closed) continue;
            if (!end.words.empty() && end.words != begin->words) continue;
            begin->to = end.line;
            begin->closed = true;
            end.used = true;
            return;
        }
    }

    // Skips further lines of the same comment: the suppression is for the code after it.
    std::size_t next_code(std::size_t n) const {
        do ++n;
        while (n <= count_ && skip_blanks(line(n)).starts_with(is_cxx_ ? "//" : "#"));
        return n;
    }

    std::string_view path_;
    const Sources& sources_;
    const std::vector<CellLine>& cells_;  // of a notebook: the lines that count
    std::size_t count_;
    bool is_cxx_;
    std::vector<PythonLine> python_;
    std::vector<Suppression> out_;
};

}  // namespace

Suppressions::File& Suppressions::of(const std::string& path) {
    const auto [it, added] = files_.try_emplace(path);
    if (!added || !mentions_suppression(sources_.text(path))) return it->second;
    FileReader reader(path, sources_);
    it->second.list = reader.run();
    for (const PythonLine& line : reader.python()) it->second.statements.push_back({line.first, line.last});
    return it->second;
}

std::size_t Suppressions::line_of(std::string_view path, std::size_t line, std::size_t column) const {
    const std::vector<CellLine>& cells = sources_.cells(path);
    if (cells.empty()) return line;
    const CellLine* code = sources_.cell_line(path, line, column);
    return code ? static_cast<std::size_t>(code - cells.data()) + 1 : 0;
}

bool Suppressions::silences(const SourceSpan& span, const Rule& rule) {
    const std::string path(span.file.str());
    File& file = of(path);
    const std::size_t line = line_of(path, span.line, span.column);
    const std::size_t end_line = line_of(path, span.end_line, span.end_column);
    std::size_t first = line, last = line;
    if (line && line <= file.statements.size()) {
        first = file.statements[line - 1].first;
        last = file.statements[line - 1].last;
    }
    bool silenced = false;
    for (Suppression& s : file.list) {
        const bool whole = s.scope == Scope::begin || s.scope == Scope::file;
        const bool there = whole ? s.from <= line && line <= s.to
                                 : s.from != 0 && (s.from == line || s.from == end_line || s.from == first ||
                                                   s.from == last);
        if (!there || s.scope == Scope::end || !any_names(s, rule)) continue;
        s.used = true;
        silenced = true;
    }
    return silenced;
}

}  // namespace mp::lint
