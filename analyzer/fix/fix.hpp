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
    bool only_show = false;  // a unified diff instead of writing
};

struct FixOutcome {
    std::size_t fixed = 0;
    std::size_t need_unsafe = 0;
    std::size_t conflicting = 0;
    std::size_t left_alone = 0;         // notebooks, files that changed, cannot be written or broke
    std::vector<std::string> messages;  // why files were left alone
    std::string diff;                   // with only_show
};

// Lints, makes the fixes, and lints again what then is there: the report is that of the fixed
// files. A file that parsed cleanly before its fix and does not after it gets its old text back.
Result<Report> lint_and_fix(const std::function<Result<Report>()>& lint, const FixOptions& options,
                            FixOutcome& outcome);

// "12 fixed, 3 need --unsafe-fixes, 1 conflicting"; empty when there was nothing to fix.
std::string fix_summary(const FixOutcome&, const FixOptions&);

}  // namespace mp::lint
