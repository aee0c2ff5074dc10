#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// Findings that were there when mp-lint was adopted. Equal ones (the same line text in the same
// function) are one entry with a count.
struct BaselineEntry {
    std::string path;  // relative to the project
    std::string rule;
    std::string function;
    std::string fingerprint;
    std::string code;  // code_hash(): finds it again when its file moved
    std::size_t count = 0;

    friend auto operator<=>(const BaselineEntry&, const BaselineEntry&) = default;
};
using Baseline = std::vector<BaselineEntry>;  // sorted

Baseline make_baseline(const Report&);

// JSON, sorted, an entry per line, so that its history is read as a diff.
std::string print_baseline(const Baseline&);
Result<Baseline> parse_baseline(std::string_view text, const std::string& path);
Result<Baseline> load_baseline(const std::string& path);

// A baseline held against a run.
struct BaselineMatch {
    Findings introduced;
    Findings preexisting;
    Baseline fixed;      // what is no longer found; count: how often
    Baseline remaining;  // the baseline as it should be now: without the fixed, moved files followed
};

// An entry matches a finding with its fingerprint, or with its code in another file when its own is
// gone (`exists` tells). What the run could not have found again is no entry that was fixed: files
// that were not analysed in full, rules that did not run.
BaselineMatch match_baseline(const Baseline&, const Report&,
                             const std::function<bool(const std::string&)>& exists);

// Moves what the baseline knows from report.findings to report.baselined; stale entries become a
// warning that names `path`.
void apply_baseline(Report&, const Baseline&, const std::string& path);

// mp-lint baseline diff: introduced, fixed and preexisting.
std::string baseline_diff(const BaselineMatch&, const Report&);

}  // namespace mp::lint
