#pragma once

#include <string>
#include <vector>

#include "analyzer/cache/pack.hpp"
#include "analyzer/driver/front_ends.hpp"
#include "analyzer/driver/options.hpp"
#include "analyzer/driver/plan.hpp"
#include "analyzer/report/report.hpp"

namespace mp::lint {

// A Python file as it was when its facts were made. mtime_ns 0: too fresh to be trusted.
struct ReadFile {
    std::string path;
    FileId id;
    std::uint64_t hash = 0;  // of the content; 0: it could not be read
    bool made = true;        // its facts are part of the program; else nothing leads to it
};

// The units of a plan as facts, from the cache or from worker processes, in the plan's order.
struct Gathered {
    std::vector<Unit> units;
    std::vector<UnitResult> results;       // one per unit
    std::vector<ReadFile> python;          // as read, in the plan's order; then configuration files
    std::vector<std::string> absent;       // where a configuration file would have been read
    std::vector<std::uint64_t> low_names;  // PythonReach's; empty when every file was analysed
    std::vector<std::string> warnings;
};

// Of Python files the pack knows facts, and keeps new ones.
Gathered gather(const Plan& plan, const LintOptions& options, const FrontEnds& parts, FactsPack& pack);

// Where facts and findings are kept.
std::string cache_directory(const LintOptions&);

// Size and time of the running binary: a rebuilt mp-lint may see more in the same file.
std::string own_binary();

ExtractOptions extract_options(const LintOptions& options, const Plan& plan);

}  // namespace mp::lint
