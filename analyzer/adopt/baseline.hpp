#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// A finding that was there when the baseline was made. Equal findings (the same line text in the same
// function) are one entry with a count.
struct BaselineEntry {
    std::string path;  // relative to the project
    std::string rule;
    std::string function;
    std::string fingerprint;
    std::string code;  // code_hash(): finds the entry again when its file moved
    std::size_t count = 0;

    friend auto operator<=>(const BaselineEntry&, const BaselineEntry&) = default;
};
using Baseline = std::vector<BaselineEntry>;  // sorted

Baseline make_baseline(const Report&);

// JSON, sorted, one entry per line, so that diffs of the file are readable.
std::string print_baseline(const Baseline&);
Result<Baseline> parse_baseline(std::string_view text, const std::string& path);
Result<Baseline> load_baseline(const std::string& path);

// The result of comparing a baseline with a run.
struct BaselineMatch {
    Findings introduced;
    Findings preexisting;
    Baseline fixed;      // entries that are no longer found; `count`: how often
    Baseline remaining;  // the updated baseline: without fixed entries, with the new paths of moved files
};

// An entry matches a finding with the same fingerprint, or with the same code in another file if its own
// file is gone (`exists` returns false). An entry that this run could not have found again does not count
// as fixed: its file was not analysed in full, or its rule did not run.
BaselineMatch match_baseline(const Baseline&, const Report&,
                             const std::function<bool(const std::string&)>& exists);

// Moves the findings that are in the baseline from report.findings to report.baselined. Adds a warning that
// names `path` when entries are stale.
void apply_baseline(Report&, const Baseline&, const std::string& path);

// mp-lint baseline diff: introduced, fixed and preexisting.
std::string baseline_diff(const BaselineMatch&, const Report&);

}  // namespace mp::lint
