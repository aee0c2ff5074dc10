// JUnit XML, GitHub markdown and JSON.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "kernels/base/escape.hpp"
#include "kernels/base/figures.hpp"
#include "runtime/gate/gate_json.hpp"
#include "runtime/gate/gate_words.hpp"
#include "runtime/report/sections.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

using State = RuleResult::State;

std::string xml(std::string_view text) { return xml_escaped(shown(text)); }
std::string markdown(std::string_view text) { return markdown_escaped(shown(text)); }

std::string junit_finding(const Finding& f, State state) {
    const std::string name = f.layer.empty() ? "run" : f.layer;
    std::string out = "    <testcase classname=\"" + xml(f.rule) + "\" name=\"" + xml(name) + "\">";
    const std::string text = "message=\"" + xml(f.message) + "\"";
    const std::string body = xml(place_of(f)) + "&#10;" + xml(f.advice);
    if (state == State::fail)
        out +=
            "<failure " + text + " type=\"" + std::string(name_of(f.severity)) + "\">" + body + "</failure>";
    else
        out += "<system-out>" + xml(f.message) + "&#10;" + body + "</system-out>";
    return out + "</testcase>\n";
}

// Under `strict` a rule with warnings alone has failed: each of its findings is then a failure.
bool counts(const RuleResult& r, const Finding& f) {
    if (r.state != State::fail || f.severity == Severity::note) return false;
    const bool errors =
        std::ranges::any_of(r.findings, [](const Finding& x) { return x.severity == Severity::error; });
    return !errors || f.severity == Severity::error;
}

std::string junit_rule(const RuleResult& r) {
    std::size_t failures = 0, skipped = 0;
    std::string cases;
    for (const Finding& f : r.findings) {
        failures += counts(r, f);
        cases += junit_finding(f, counts(r, f) ? State::fail : State::warn);
    }
    for (const Finding& f : r.suppressed) {
        ++skipped;
        cases += "    <testcase classname=\"" + xml(r.id) + "\" name=\"" +
                 xml(f.layer.empty() ? "run" : f.layer) + "\"><skipped message=\"suppressed\"/></testcase>\n";
    }
    if (cases.empty()) {
        const bool skip = r.state == State::not_run || r.state == State::inconclusive;
        skipped += skip;
        cases =
            "    <testcase classname=\"" + xml(r.id) + "\" name=\"" + xml(title_of(r)) + "\">" +
            (skip ? "<skipped message=\"" + xml(std::string(name_of(r.state)) + ": " + r.why) + "\"/>" : "") +
            "</testcase>\n";
    }
    const std::size_t tests = std::max<std::size_t>(1, r.findings.size() + r.suppressed.size());
    return "  <testsuite name=\"" + xml(r.id + " " + r.name) + "\" tests=\"" + std::to_string(tests) +
           "\" failures=\"" + std::to_string(failures) + "\" errors=\"0\" skipped=\"" +
           std::to_string(skipped) + "\">\n" + cases + "  </testsuite>\n";
}

std::string junit_lint(const GateResult& g) {
    std::size_t failures = 0, tests = 0;
    std::string cases;
    for (const LintFinding& l : g.lint) {
        const bool fails = l.level == "error" || l.level == "warning";
        ++tests;
        failures += fails;
        cases +=
            "    <testcase classname=\"" + xml(l.rule) + "\" name=\"" +
            xml(l.file + ":" + std::to_string(l.line)) + "\">" +
            (fails ? "<failure message=\"" + xml(l.message) + "\" type=\"" + xml(l.level) + "\"/>" : "") +
            "</testcase>\n";
    }
    if (tests == 0) return {};
    return "  <testsuite name=\"mp-lint\" tests=\"" + std::to_string(tests) + "\" failures=\"" +
           std::to_string(failures) + "\" errors=\"0\" skipped=\"0\">\n" + cases + "  </testsuite>\n";
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

std::string written(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string gate_junit(const GateResult& g, const std::string& run) {
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"" +
                      xml("mp-trace gate " + run) + "\">\n";
    for (const RuleResult& r : g.rules) out += junit_rule(r);
    return out + junit_lint(g) + "</testsuites>\n";
}

std::string gate_github(const GateResult& g, const std::string& run) {
    std::string out =
        "### mp-trace gate: " + std::string(name_of(g.verdict)) + "\n\n" + markdown(run) + "\n\n";
    if (count_of(g, State::fail) + count_of(g, State::warn) > 0) {
        out += "| | rule | where | what | fix |\n|---|---|---|---|---|\n";
        for (const RuleResult& r : g.rules) {
            for (const Finding& f : r.findings)
                out += "| " + std::string(name_of(f.severity)) + " | " + r.id + " " + r.name + " | " +
                       markdown(place_of(f)) + " | " + markdown(f.message) + " | " + markdown(f.advice) +
                       " |\n";
        }
        out += "\n";
    }
    for (const LintFinding& l : g.lint) {
        out += "- mp-lint " + markdown(l.level + " " + l.rule + " " + l.file + ":" + std::to_string(l.line) +
                                       " " + l.message);
        out += l.confirmed_by.empty() ? "\n" : "; the run confirms it\n";
    }
    for (const std::string& why : g.inconclusive) out += "- inconclusive: " + markdown(why) + "\n";
    for (const Suppression& s : g.expired)
        out += "- suppression expired: " + markdown(suppression_text(s)) + "\n";
    for (const Suppression& s : g.unused)
        out += "- suppression matches nothing: " + markdown(suppression_text(s)) + "\n";
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
    return written(out);
}

}  // namespace mp::trace
