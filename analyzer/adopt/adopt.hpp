#pragma once

#include <string>
#include <vector>

#include "analyzer/driver/lint.hpp"
#include "analyzer/fix/fix.hpp"

namespace mp::lint {

// How a project that has findings already lives with mp-lint.
struct AdoptOptions {
    std::string baseline;   // file of findings that do not count; empty: none
    std::string diff_base;  // git revision: only lines changed since; empty: all
    bool fix = false;
    FixOptions how;
};

// run_lint, with the findings left out that the baseline knows or that are not on changed lines,
// and with fixes made, when asked for.
Result<Report> run_adopted(const LintOptions&, const FrontEnds&, const AdoptOptions&, FixOutcome&);

struct BaselineAnswer {
    std::string out;   // what was asked for
    std::string said;  // what was done
    int code = 0;
};

// `words` is "make FILE", "update FILE" or "diff FILE".
Result<BaselineAnswer> run_baseline(const std::vector<std::string>& words, const LintOptions&,
                                    const FrontEnds&);

}  // namespace mp::lint
