#include "kernels/base/figures.hpp"
#include "runtime/gate/gate_words.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

using State = RuleResult::State;

constexpr std::size_t kMostFindings = 5;  // shown per rule; the others are counted
constexpr std::size_t kMostLint = 20;

class Painter {
public:
    explicit Painter(bool color) : color_(color) {}
    std::string label(std::string_view word, const char* code) const {
        return color_ ? std::string("\x1b[") + code + "m" + std::string(word) + "\x1b[0m" : std::string(word);
    }

private:
    bool color_;
};

std::string finding_lines(const Finding& f) {
    std::string out = "      " + place_of(f) + "\n      " + f.message + "\n";
    if (!f.advice.empty()) out += "      = fix: " + f.advice + "\n";
    for (const std::string& by : f.confirmed_by) out += "      = confirmed by mp-lint: " + shown(by) + "\n";
    return out;
}

void rule_lines(const RuleResult& r, const Painter& paint, std::string& out) {
    const bool failed = r.state == State::fail;
    out += failed ? paint.label("FAIL", "31") : paint.label("WARN", "33");
    out += "  " + r.id + " " + title_of(r) + "\n";
    for (std::size_t i = 0; i < r.findings.size() && i < kMostFindings; ++i)
        out += finding_lines(r.findings[i]);
    if (r.findings.size() > kMostFindings)
        out += "      and " + counted(r.findings.size() - kMostFindings, "more finding") + "\n";
}

void lint_lines(const GateResult& g, const Painter& paint, std::string& out) {
    std::size_t listed = 0, all = 0;
    for (const LintFinding& l : g.lint) {
        if (l.level != "error" && l.level != "warning") continue;
        if (++all > kMostLint) continue;
        ++listed;
        out += paint.label("FAIL", "31") + "  " + shown(l.rule) + " " + shown(l.file) + ":" +
               std::to_string(l.line) + ": " + shown(l.message) + "\n";
        for (const std::string& by : l.confirmed_by)
            out += "      = the run confirms it: " + shown(by) + "\n";
    }
    if (all > listed) out += "      and " + counted(all - listed, "more finding") + " of mp-lint\n";
}

std::string last_line(const GateResult& g) {
    std::string out = std::string(g.verdict == Verdict::pass   ? "PASS"
                                  : g.verdict == Verdict::fail ? "FAIL"
                                                               : "INCONCLUSIVE");
    out += "  " + counted(count_of(g, State::pass), "rule") + " passed";
    for (const State state : {State::warn, State::fail, State::inconclusive, State::not_run}) {
        const std::size_t n = count_of(g, state);
        if (n == 0) continue;
        out += " · " + std::to_string(n) + " " +
               (state == State::warn   ? std::string("warned")
                : state == State::fail ? "failed"
                                       : std::string(name_of(state)));
    }
    std::size_t suppressed = 0;
    for (const RuleResult& r : g.rules) suppressed += r.suppressed.size();
    if (suppressed > 0) out += " · " + counted(suppressed, "finding") + " suppressed";
    return out + "\n";
}

}  // namespace

std::string gate_text(const GateResult& g, bool color) {
    const Painter paint(color);
    std::string out;
    for (const State state : {State::fail, State::warn}) {
        for (const RuleResult& r : g.rules) {
            if (r.state == state) rule_lines(r, paint, out);
        }
        if (state == State::fail) lint_lines(g, paint, out);
    }
    for (const std::string& why : g.inconclusive)
        out += paint.label("INCONCLUSIVE", "33") + "  " + why + "\n";
    for (const Suppression& s : g.expired) out += "suppression expired: " + suppression_text(s) + "\n";
    for (const Suppression& s : g.unused) out += "suppression matches nothing: " + suppression_text(s) + "\n";
    return out + last_line(g);
}

}  // namespace mp::trace
