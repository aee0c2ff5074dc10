#pragma once

#include <string>
#include <vector>

#include "analyzer/driver/lint.hpp"
#include "analyzer/fix/fix.hpp"

namespace mp::lint {

// Options for a project that adopts mp-lint and already has findings.
struct AdoptOptions {
    std::string baseline;   // file of findings that are not reported; empty: none
    std::string diff_base;  // git revision: report only lines changed since; empty: all lines
    bool fix = false;
    FixOptions how;
};

// Runs run_lint and removes the findings that are in the baseline or not on changed lines. Applies fixes if
// options ask for them.
Result<Report> run_adopted(const LintOptions&, const FrontEnds&, const AdoptOptions&, FixOutcome&);

struct BaselineAnswer {
    std::string out;   // the requested output
    std::string said;  // a message for the user about what was done
    int code = 0;
};

// `words` is "make FILE", "update FILE" or "diff FILE".
Result<BaselineAnswer> run_baseline(const std::vector<std::string>& words, const LintOptions&,
                                    const FrontEnds&);

}  // namespace mp::lint
