#pragma once

#include <span>
#include <string_view>

#include "analyzer/analyses/context.hpp"
#include "analyzer/rules/triggers.hpp"

namespace mp::lint {

struct Rule {
    std::string_view id;                    // "MP401", frozen
    std::string_view name;                  // "half-accumulator"; reads well after "allow"
    Severity severity = Severity::warning;  // the highest it reports
    bool on_by_default = true;              // false: only with --select
    std::string_view confirmed_by;          // ids of the run's findings that would confirm it, "MPT004"
    Triggers triggers;                      // what Python code must contain for a finding
    void (*check)(const RuleContext&, Findings&) = nullptr;
};

// Every rule, sorted by id. A rule is one file (analyzer/rules/<name with _>.cpp, which defines k<NameInCamelCase>),
// its test beside the others and its page (testdata/lint/<id>.md). CMake finds all three.
std::span<const Rule* const> all_rules();
const Rule* find_rule(std::string_view id_or_name);

// The page of a rule as Markdown, built into the binary from testdata/lint/<id>.md.
std::string_view rule_page(std::string_view id);

}  // namespace mp::lint
