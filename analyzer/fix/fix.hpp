#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/report/report.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

struct FixOptions {
    bool with_unsafe = false;
    bool only_show = false;  // output a unified diff, do not write
};

struct FixOutcome {
    std::size_t fixed = 0;
    std::size_t need_unsafe = 0;
    std::size_t conflicting = 0;
    std::size_t left_alone = 0;         // in notebooks, changed since the analysis, not writable, or broken
                                        // by the fix
    std::vector<std::string> messages;  // the reasons for files that were left alone
    std::string diff;                   // set with only_show
};

// Lints, applies the fixes, and lints again: the report is that of the fixed files. If a file parsed
// cleanly before its fix and does not afterwards, its old text is restored.
Result<Report> lint_and_fix(const std::function<Result<Report>()>& lint, const FixOptions& options,
                            FixOutcome& outcome);

// "12 fixed, 3 need --unsafe-fixes, 1 conflicting"; empty when there was nothing to fix.
std::string fix_summary(const FixOutcome&, const FixOptions&);

}  // namespace mp::lint
