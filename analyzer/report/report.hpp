#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/analyses/finding.hpp"
#include "analyzer/report/sources.hpp"

namespace mp::lint {

// The result for one unit: one source file with one command line.
struct UnitResult {
    std::string path;
    UnitState state = UnitState::ok;
    std::string message;  // the reason when it is not ok: "killed by signal 11", "no answer within 120 s"
    std::string headers;
    std::vector<std::string> passes;
    Coverage coverage;
    std::vector<std::string> warnings;  // of its command line
    bool cached = false;
    double seconds = 0;
    bool may_suppress = true;  // its text may hold a suppression comment
};

std::string_view name_of(UnitState);  // "ok", "partial", "failed", "timeout", "crashed"

// The texts of a rule for reports; the driver takes them from the registry.
struct RuleText {
    std::string_view id;
    std::string_view name;
    Severity severity = Severity::warning;
    std::string_view page;  // Markdown
};

// One run, complete and sorted: the input of every report format.
struct Report {
    Findings findings;    // by severity is the reporter's business; here by file, line, column, rule
    Findings suppressed;  // silenced by a comment in the source
    Findings hidden{};    // notes that are only counted, by hide_notes()
    std::vector<UnitResult> units;
    std::vector<std::string> warnings;  // about the run: cache, command lines
    std::vector<RuleText> rules;        // rules that ran
    Sources sources;
    std::string tool_version;
    std::string homepage;  // address of the published sources, without a slash at its end; may be empty
    std::string working_directory;  // paths are shown relative to it
    std::string project_root;       // SARIF's %SRCROOT%
    std::size_t files = 0;          // distinct source files analysed
    double seconds = 0;
    bool analysed_anything = true;  // false: exit code 2
    Findings baselined{};           // listed in the baseline file
    bool used_baseline = false;     // there was a baseline; all `findings` are then new
    bool lacks_database = false;    // a C++ unit did not parse cleanly, and no database gave its folders
    std::vector<std::string>
        lone_headers{};  // templates in them have no instantiation: no unit includes them
    std::size_t fixes_in_notebooks =
        0;                         // findings with edits that cannot be made: the code is text inside JSON
    std::size_t outside_diff = 0;  // findings omitted because their lines did not change since --diff-base
};

std::size_t count(const Findings&, Severity);
// Notes are context for those who ask: without --notes, formats that people read only count them.
void hide_notes(Report&);
// Units that were not analysed completely.
std::vector<const UnitResult*> incomplete(const Report&);

struct TextStyle {
    bool color = false;
    bool quiet = false;    // findings only, without the last line
    bool verbose = false;  // a line per unit with its coverage
};

// In gcc's format, so that editors find the places: "file:line:col: error: message [MP401 name]".
std::string text_report(const Report&, const TextStyle&);

// {"version": 1, "tool", "summary", "findings", "suppressed", "units", "warnings"}; documented in json.cpp.
// The version increases when a field changes its meaning or is removed.
std::string json_report(const Report&);

// SARIF 2.1.0 for GitHub code scanning.
std::string sarif_report(const Report&);

// For CI: annotations of GitHub Actions (the most severe 10 of each level) after the text, GitLab's
// code quality report, reviewdog's rdjson with suggestions, JUnit XML, and a Markdown table below
// the size a step summary may have.
std::string github_report(const Report&);
std::string gitlab_report(const Report&);
std::string rdjson_report(const Report&);
std::string junit_report(const Report&);
std::string markdown_report(const Report&);

}  // namespace mp::lint
