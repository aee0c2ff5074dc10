#include "runtime/gate/gate_words.hpp"

#include <algorithm>

#include "runtime/judge/rule_pack.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {

std::string_view name_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return "pass";
        case Verdict::fail:
            return "fail";
        case Verdict::inconclusive:
            break;
    }
    return "inconclusive";
}

std::string_view name_of(RuleResult::State state) {
    switch (state) {
        case RuleResult::State::pass:
            return "pass";
        case RuleResult::State::warn:
            return "warn";
        case RuleResult::State::fail:
            return "fail";
        case RuleResult::State::not_run:
            return "not run";
        case RuleResult::State::inconclusive:
            break;
    }
    return "inconclusive";
}

std::string place_of(const Finding& f) {
    std::vector<std::string> parts;
    if (!f.layer.empty()) parts.push_back(shown(f.layer));
    if (!f.op.empty()) parts.push_back(shown(f.op));
    if (f.phase != Phase::unknown) parts.emplace_back(name_of(f.phase));
    if (f.step.known()) parts.push_back("step " + std::to_string(f.step.value));
    if (f.rank.known()) parts.push_back("rank " + std::to_string(f.rank.value));
    if (f.device >= 0) parts.push_back("device " + std::to_string(f.device));
    if (!f.source.empty()) parts.push_back(shown(f.source));
    std::string out;
    for (const std::string& part : parts) out += (out.empty() ? "" : " · ") + part;
    return out.empty() ? "the run" : out;
}

std::string title_of(const RuleResult& rule) {
    const RuleInfo* info = rule_called(rule.id);
    return std::string(info ? info->title : std::string_view(rule.name));
}

std::size_t count_of(const GateResult& result, RuleResult::State state) {
    return static_cast<std::size_t>(std::ranges::count(result.rules, state, &RuleResult::state));
}

std::string suppression_text(const Suppression& s) {
    std::string out = shown(s.file) + ":" + std::to_string(s.line) + ": " + shown(s.rule);
    if (s.layer != "*") out += " in " + shown(s.layer);
    out += " (" + shown(s.reason) + ")";
    return s.expires.empty() ? out : out + ", until " + shown(s.expires);
}

}  // namespace mp::trace
