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
//   mp-lint: disable-file=MP405 why      the whole file, wherever it stands
//   NOLINT(MP405) why, NOLINTNEXTLINE(MP405) why; in Python also noqa: MP405 why
// A line of a statement over several lines is meant by a comment on its first or last line too.
// NOLINT and noqa without our rules are other tools'.
struct Suppression {
    enum class Scope : unsigned char { line, next_line, begin, end, file, unknown };
    Scope scope = Scope::line;
    std::vector<std::string> words{};
    bool reason = false;     // it says why
    bool ours = true;        // "mp-lint:", so every word must be a rule
    std::size_t line = 0;    // where it stands
    std::size_t column = 0;  // in bytes, from 1
    std::size_t length = 0;
    std::size_t from = 0;  // lines it silences
    std::size_t to = 0;
    bool closed = false;  // begin: there is its end
    bool used = false;
};

// The comments of one line that silence something; `comment` is the offset of the comment in it.
std::vector<Suppression> suppressions_of(std::string_view line, std::size_t comment, bool python);

// Can this text hold any? Quick, for files that have no findings.
bool mentions_suppression(std::string_view text);

// The suppressions of all files of a run, and which of them were of use.
class Suppressions {
public:
    explicit Suppressions(const Sources& sources) : sources_(sources) {}

    // Is this rule silenced there? The comment that does it counts as used.
    bool silences(const SourceSpan& span, const Rule& rule);

    // What is wrong with the comments of a file: MP001 for one that silences nothing though its
    // rules ran, is not understood or names no rule; MP002 for one without a reason.
    Findings problems(const std::string& path, Rules ran, Rules all);

private:
    // The first and last line of the statement that a line belongs to.
    struct Extent {
        std::size_t first = 0;
        std::size_t last = 0;
    };
    struct File {
        std::vector<Suppression> list;
        std::vector<Extent> statements;  // by line, from 0; empty: every line is its own
    };
    File& of(const std::string& path);

    const Sources& sources_;
    std::map<std::string, File> files_;
};

}  // namespace mp::lint
