#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/config/selection.hpp"
#include "analyzer/report/sources.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// A comment that silences rule words (MP405, half-norm-stats, MP4, MP4*, ALL):
//   mp-lint: disable=MP405,MP401 why     its line; alone on its line, the next one
//   mp-lint: disable-next-line=MP405 why
//   mp-lint: disable-begin=MP405 why     up to disable-end, or disable-end=MP405
//   mp-lint: disable-file=MP405 why      the whole file, from any line
//   NOLINT(MP405) why, NOLINTNEXTLINE(MP405) why; in Python also noqa: MP405 why
// A comment on the first or last line of a statement applies to all lines of the statement. NOLINT and noqa
// without a rule of mp-lint belong to other tools.
struct Suppression {
    enum class Scope : unsigned char { line, next_line, begin, end, file, unknown };
    Scope scope = Scope::line;
    std::vector<std::string> words{};
    bool reason = false;     // it contains a reason
    bool ours = true;        // "mp-lint:", so every word must be a rule
    std::size_t line = 0;    // its own line
    std::size_t column = 0;  // in bytes, from 1
    std::size_t length = 0;
    std::size_t from = 0;  // the lines it silences
    std::size_t to = 0;
    bool closed = false;  // for begin: its end was found
    bool used = false;
};

// The suppressions in the comment of one line; `comment` is the offset of the comment in the line.
std::vector<Suppression> suppressions_of(std::string_view line, std::size_t comment, bool python);

// Whether the text can contain suppressions. A fast check for files without findings.
bool mentions_suppression(std::string_view text);

// The suppressions of all files of a run. Records which of them were used.
class Suppressions {
public:
    explicit Suppressions(const Sources& sources) : sources_(sources) {}

    // Whether a suppression silences this rule at this place. Marks that suppression as used.
    bool silences(const SourceSpan& span, const Rule& rule);

    // Findings about the suppressions of a file. MP001: it silences nothing although its rules ran, cannot
    // be parsed, or names no rule. MP002: it has no reason.
    Findings problems(const std::string& path, Rules ran, Rules all);

private:
    // The first and last line of the statement that contains a line.
    struct Extent {
        std::size_t first = 0;
        std::size_t last = 0;
    };
    struct File {
        std::vector<Suppression> list;
        std::vector<Extent> statements;  // by line, from 0; empty: every line is a statement of its own
    };
    File& of(const std::string& path);
    // The line that suppressions count: in a notebook those of its code, from 1.
    std::size_t line_of(std::string_view path, std::size_t line, std::size_t column) const;

    const Sources& sources_;
    std::map<std::string, File> files_;
};

}  // namespace mp::lint
