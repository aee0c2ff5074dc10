#include "runtime/gate/gate.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "runtime/judge/rule_pack.hpp"

namespace mp::trace {
namespace {

using State = RuleResult::State;

bool globs(const std::string& pattern, std::string_view text) {
    return pattern == "*" || ::fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

bool covers(const Suppression& s, const Finding& f) {
    const auto has = [&](const std::string& layer) { return globs(s.layer, layer); };
    return (s.rule == "*" || s.rule == f.rule) && has(f.layer) && std::ranges::all_of(f.more_layers, has) &&
           globs(s.op, f.op) && globs(s.phase, name_of(f.phase));
}

// ISO dates can be compared as text. The suppression is still valid on the day itself.
bool is_expired(const Suppression& s, const std::string& today) {
    return !s.expires.empty() && s.expires < today;
}

bool holds(const std::vector<std::string>& list, std::string_view id) {
    return std::ranges::find(list, id) != list.end();
}

void confirm_lint(std::vector<LintFinding>& lint, const std::vector<Finding>& findings) {
    for (LintFinding& l : lint) {
        const std::string place = l.rule + " " + l.file + ":" + std::to_string(l.line);
        for (const Finding& f : findings) {
            if (!holds(f.confirmed_by, place)) continue;
            std::string text = f.rule;
            for (const std::string& part : {f.layer, f.op}) text += part.empty() ? "" : " " + part;
            l.confirmed_by.push_back(std::move(text));
        }
    }
}

// Assigns the findings to their rules; returns which suppressions were used.
std::vector<bool> distribute(const std::vector<Finding>& findings, const Rules& rules,
                             const std::string& today, std::vector<RuleResult>& into) {
    std::vector<bool> used(rules.suppressions.size(), false);
    for (const Finding& f : findings) {
        const auto rule = std::ranges::find(into, f.rule, &RuleResult::id);
        if (rule == into.end()) continue;
        bool suppressed = false;
        for (std::size_t i = 0; i < rules.suppressions.size(); ++i) {
            if (!covers(rules.suppressions[i], f)) continue;
            used[i] = true;
            suppressed = suppressed || !is_expired(rules.suppressions[i], today);
        }
        (suppressed ? rule->suppressed : rule->findings).push_back(f);
    }
    return used;
}

State worst_of(const std::vector<Finding>& findings, bool strict) {
    State state = State::pass;
    for (const Finding& f : findings) {
        if (f.severity == Severity::error) return State::fail;
        if (f.severity == Severity::warning) state = strict ? State::fail : State::warn;
    }
    return state;
}

void settle(RuleResult& r, const Judgement& judgement, const Rules& rules, bool strict) {
    if (holds(rules.disabled, r.id)) {
        r.state = State::not_run;
        r.why = "disabled in " + rules.file;
        r.findings.clear();
        return;
    }
    r.state = worst_of(r.findings, strict);
    if (r.state != State::pass) return;
    if (r.id == "MPT090" && !judgement.inconclusive.empty()) {
        r.state = State::inconclusive;
        r.why = judgement.inconclusive.front();
        return;
    }
    const auto skipped = std::ranges::find(judgement.not_run, r.id, &Judgement::NotRun::rule);
    if (skipped == judgement.not_run.end()) return;
    r.state = State::not_run;
    r.why = skipped->why;
}

bool fails(const LintFinding& l) { return l.level == "error" || l.level == "warning"; }

}  // namespace

GateResult gate(const Judgement& judgement, const Rules& rules, const std::vector<LintFinding>& lint,
                const std::string& today, bool strict) {
    GateResult out;
    std::vector<Finding> findings = judgement.findings;
    join(findings, lint);
    out.lint = lint;
    confirm_lint(out.lint, findings);
    for (const RuleInfo& info : rule_pack()) {
        RuleResult r;
        r.id = info.id;
        r.name = info.name;
        out.rules.push_back(std::move(r));
    }
    const std::vector<bool> used = distribute(findings, rules, today, out.rules);
    for (std::size_t i = 0; i < rules.suppressions.size(); ++i) {
        const Suppression& s = rules.suppressions[i];
        if (is_expired(s, today))
            out.expired.push_back(s);
        else if (!used[i])
            out.unused.push_back(s);
    }
    bool failed = std::ranges::any_of(lint, fails);
    for (RuleResult& r : out.rules) {
        settle(r, judgement, rules, strict);
        failed = failed || r.state == State::fail;
    }
    if (!holds(rules.disabled, "MPT090")) out.inconclusive = judgement.inconclusive;
    out.verdict = failed ? Verdict::fail : out.inconclusive.empty() ? Verdict::pass : Verdict::inconclusive;
    return out;
}

int exit_code(const GateResult& result) {
    switch (result.verdict) {
        case Verdict::pass:
            return 0;
        case Verdict::fail:
            return 1;
        case Verdict::inconclusive:
            break;
    }
    return 3;
}

}  // namespace mp::trace
