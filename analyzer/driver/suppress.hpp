#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/sources.hpp"
#include "analyzer/rules/finding.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// What a comment on one line silences: rule words (MP405, half-norm-stats, MP4, MP4*, ALL), on its
// own line or on the next.
struct Suppression {
    bool next_line = false;
    std::vector<std::string> words;
};

// Reads the comments of one line: `mp-lint: disable=MP405,MP401 why`, `mp-lint:
// disable-next-line=...`, `NOLINT(MP405)`, `NOLINTNEXTLINE(MP405)`, and in Python `# noqa: MP405`.
// A `disable` alone on its line means the next one. NOLINT without our rules is another tool's.
std::vector<Suppression> suppressions_of(std::string_view line, bool python = false);

// Is this rule silenced on line `number` of the file?
bool is_suppressed(const Sources& sources, std::string_view file, std::size_t number,
                   const Rule& rule);

}  // namespace mp::lint
