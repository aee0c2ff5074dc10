#pragma once

#include <string>

#include "runtime/gate/gate.hpp"

namespace mp::trace::test {

inline Finding finding(std::string rule, Severity severity, std::string layer) {
    Finding f;
    f.rule = std::move(rule);
    f.name = "name";
    f.severity = severity;
    f.layer = std::move(layer);
    f.op = "aten::addmm";
    f.phase = Phase::forward;
    f.step = Step{17};
    f.rank = Rank{1};
    f.source = "src/train.py:88";
    f.message = "addmm gave 3 non-finite values";
    f.advice = "run it in fp32";
    return f;
}

inline Judgement judged(std::vector<Finding> findings = {}) {
    Judgement j;
    j.findings = std::move(findings);
    j.not_run = {{"MPT030", "needs a twin (--mode trajectory)"}};
    return j;
}

inline LintFinding lint(std::string level, std::string file, int line) {
    LintFinding l;
    l.rule = "MP401";
    l.name = "half-accumulator";
    l.level = std::move(level);
    l.file = std::move(file);
    l.line = line;
    l.message = "the sum is held in half";
    return l;
}

inline constexpr const char* kToday = "2026-11-21";

}  // namespace mp::trace::test
