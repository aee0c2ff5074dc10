#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

struct Suppression {
    std::string rule;         // "MPT010"; "*": all
    std::string layer = "*";  // globs
    std::string op = "*";
    std::string phase = "*";
    std::string reason;   // required
    std::string expires;  // "2027-01-31"; empty: never. The rule file's [suppressions] table can require it
    int line = 0;         // in the rule file
    std::string file;     // the rule file
};

// The content of mp-gate.toml.
struct Rules {
    Limits limits;
    std::vector<std::string> disabled;  // rule ids
    std::vector<Suppression> suppressions;
    std::vector<std::string> policies;
    std::string file;  // empty: the defaults
};
// Errors contain file:line and the allowed values. Unknown keys are errors with a suggestion.
Result<Rules> read_rules(const std::string& path);
Result<Rules> parse_rules(std::string_view text, std::string_view name);

// One finding of mp-lint, from its JSON or SARIF output.
struct LintFinding {
    std::string rule, name, level, file, message;
    int line = 0;
    std::vector<std::string>
        confirmed_by;  // findings of the run at the same place: "MPT012 (loss) aten::add"; set by gate()
};
Result<std::vector<LintFinding>> read_lint(const std::string& path);
// Findings at the same file and line confirm each other. Paths match when one ends with all components of
// the other.
void join(std::vector<Finding>&, const std::vector<LintFinding>&);

enum class Verdict : std::uint8_t { pass, fail, inconclusive };

struct RuleResult {
    std::string id, name;
    enum class State : std::uint8_t { pass, warn, fail, not_run, inconclusive } state = State::pass;
    std::string why;  // for not_run and inconclusive
    std::vector<Finding> findings;
    std::vector<Finding> suppressed;
};

struct GateResult {
    Verdict verdict = Verdict::pass;
    std::vector<RuleResult> rules;  // all rules of the pack, by id
    std::vector<LintFinding> lint;  // from --lint; errors and warnings fail the gate
    std::vector<Suppression> unused, expired;
    std::vector<std::string> inconclusive;
};

// `today` is a date like "2026-11-21". `strict`: warnings fail the gate too.
GateResult gate(const Judgement&, const Rules&, const std::vector<LintFinding>& lint,
                const std::string& today, bool strict = false);
int exit_code(const GateResult&);  // 0 pass, 1 failed, 3 inconclusive

std::string gate_text(const GateResult&, bool color);
std::string gate_junit(const GateResult&, const std::string& run);
std::string gate_sarif(const GateResult&, const std::string& run);
std::string gate_github(const GateResult&, const std::string& run);  // markdown for GITHUB_STEP_SUMMARY
std::string gate_json(const GateResult&, const std::string& run);

}  // namespace mp::trace
