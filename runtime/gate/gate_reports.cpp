// JUnit XML, GitHub markdown and JSON.

#include <algorithm>
#include <vector>

#include "kernels/base/escape.hpp"
#include "kernels/base/figures.hpp"
#include "kernels/base/reports/junit.hpp"
#include "kernels/base/reports/markdown.hpp"
#include "kernels/base/reports/sarif.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/gate_words.hpp"
#include "runtime/judge/finding_json.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

using State = RuleResult::State;

std::string md(std::string_view text) { return markdown_escaped(shown(text)); }

std::string layer_of(const Finding& f) { return shown(f.layer.empty() ? "run" : f.layer); }

std::string junit_finding(const Finding& f, bool fails) {
    const std::vector<std::string> lines{shown(place_of(f)), shown(f.advice)};
    if (fails) return junit::problem("failure", shown(f.message), name_of(f.severity), lines);
    return junit::system_out({shown(f.message), lines[0], lines[1]});
}

// Under `strict` a rule with warnings alone has failed: each of its findings is then a failure.
bool counts(const RuleResult& r, const Finding& f) {
    if (r.state != State::fail || f.severity == Severity::note) return false;
    const bool errors =
        std::ranges::any_of(r.findings, [](const Finding& x) { return x.severity == Severity::error; });
    return !errors || f.severity == Severity::error;
}

junit::Suite junit_rule(const RuleResult& r) {
    junit::Suite suite{.name = shown(r.id + " " + r.name)};
    for (const Finding& f : r.findings) {
        suite.failures += counts(r, f);
        suite.add(shown(f.rule), layer_of(f), junit_finding(f, counts(r, f)));
    }
    for (const Finding& f : r.suppressed) {
        ++suite.skipped;
        suite.add(shown(r.id), layer_of(f), junit::problem("skipped", "suppressed", ""));
    }
    if (suite.tests > 0) return suite;
    const bool skip = r.state == State::not_run || r.state == State::inconclusive;
    suite.skipped += skip;
    const std::string why = shown(std::string(name_of(r.state)) + ": " + r.why);
    suite.add(shown(r.id), shown(title_of(r)), skip ? junit::problem("skipped", why, "") : "");
    return suite;
}

junit::Suite junit_lint(const GateResult& g) {
    junit::Suite suite{.name = "mp-lint"};
    for (const LintFinding& l : g.lint) {
        const bool fails = l.level == "error" || l.level == "warning";
        suite.failures += fails;
        suite.add(shown(l.rule), shown(l.file + ":" + std::to_string(l.line)),
                  fails ? junit::problem("failure", shown(l.message), shown(l.level)) : "");
    }
    return suite;
}

Json list_of(const std::vector<Finding>& findings) {
    Json out = Json::array();
    for (const Finding& f : findings) out.push_back(finding_entry(f));
    return out;
}

Json list_of(const std::vector<Suppression>& suppressions) {
    Json out = Json::array();
    for (const Suppression& s : suppressions)
        out.push_back({{"rule", s.rule},
                       {"layer", s.layer},
                       {"op", s.op},
                       {"phase", s.phase},
                       {"reason", s.reason},
                       {"expires", s.expires},
                       {"line", s.line}});
    return out;
}

}  // namespace

std::string gate_junit(const GateResult& g, const std::string& run) {
    std::vector<junit::Suite> suites;
    for (const RuleResult& r : g.rules) suites.push_back(junit_rule(r));
    if (!g.lint.empty()) suites.push_back(junit_lint(g));
    return junit::document(shown("mp-trace gate " + run), suites, false);
}

std::string gate_github(const GateResult& g, const std::string& run) {
    std::string out = "### mp-trace gate: " + std::string(name_of(g.verdict)) + "\n\n" + md(run) + "\n\n";
    if (count_of(g, State::fail) + count_of(g, State::warn) > 0) {
        out += markdown::kTableHead;
        for (const RuleResult& r : g.rules) {
            for (const Finding& f : r.findings)
                out += markdown::row(name_of(f.severity), r.id + " " + r.name, md(place_of(f)), md(f.message),
                                     md(f.advice));
        }
        out += "\n";
    }
    for (const LintFinding& l : g.lint) {
        out += "- mp-lint " +
               md(l.level + " " + l.rule + " " + l.file + ":" + std::to_string(l.line) + " " + l.message);
        out += l.confirmed_by.empty() ? "\n" : "; the run confirms it\n";
    }
    for (const std::string& why : g.inconclusive) out += "- inconclusive: " + md(why) + "\n";
    for (const Suppression& s : g.expired) out += "- suppression expired: " + md(suppression_text(s)) + "\n";
    for (const Suppression& s : g.unused)
        out += "- suppression matches nothing: " + md(suppression_text(s)) + "\n";
    out += "\n" + counted(count_of(g, State::pass), "rule") + " passed, " +
           std::to_string(count_of(g, State::not_run)) + " not run\n";
    return out;
}

std::string gate_json(const GateResult& g, const std::string& run) {
    Json out = {{"version", 1}, {"run", run}, {"verdict", name_of(g.verdict)}, {"exit_code", exit_code(g)}};
    out["rules"] = Json::array();
    for (const RuleResult& r : g.rules)
        out["rules"].push_back({{"id", r.id},
                                {"name", r.name},
                                {"state", name_of(r.state)},
                                {"why", r.why},
                                {"findings", list_of(r.findings)},
                                {"suppressed", list_of(r.suppressed)}});
    out["lint"] = Json::array();
    for (const LintFinding& l : g.lint)
        out["lint"].push_back({{"rule", l.rule},
                               {"name", l.name},
                               {"level", l.level},
                               {"file", l.file},
                               {"line", l.line},
                               {"message", l.message},
                               {"confirmed_by", l.confirmed_by}});
    out["inconclusive"] = g.inconclusive;
    out["unused_suppressions"] = list_of(g.unused);
    out["expired_suppressions"] = list_of(g.expired);
    return sarif::written(out);
}

}  // namespace mp::trace
