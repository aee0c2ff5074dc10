#pragma once

// Runs one rule over facts written by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/facts/text.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint::test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Profile { training, inference };

inline Findings findings(std::string_view id, const std::vector<std::string>& texts,
                         Profile profile = Profile::training, std::string_view torch = "",
                         const Project& project = {}) {
    std::vector<Unit> units;
    for (const std::string& text : texts) {
        auto unit = parse_facts(text);
        if (!unit) {
            ADD_FAILURE() << unit.error().message << "\n" << text;
            return {};
        }
        units.push_back(std::move(*unit));
    }
    static const Policies policies = Policies::load("").value();
    const Program program = Program::link(std::move(units));
    const Rule* rule = find_rule(id);
    if (!rule) {
        ADD_FAILURE() << "no rule " << id;
        return {};
    }
    Findings out;
    rule->check({.program = program,
                 .policies = policies,
                 .inference = profile == Profile::inference,
                 .torch = parse_torch_version(torch).value_or(TorchVersion{}),
                 .project = project},
                out);
    for (const Finding& finding : out) {
        EXPECT_EQ(finding.rule, id);
        EXPECT_LE(finding.severity, rule->severity) << "above the severity the rule declares";
        EXPECT_FALSE(finding.message.empty());
        EXPECT_FALSE(finding.fix.empty());
        EXPECT_NE(finding.message.back(), '.') << finding.message;
        EXPECT_EQ(finding.message.find('\n'), std::string::npos) << finding.message;
    }
    return out;
}

// "error 12": severity and line of each finding, in the order in which the rule gives them.
inline std::vector<std::string> lint(std::string_view id, const std::vector<std::string>& texts,
                                     Profile profile = Profile::training, std::string_view torch = "",
                                     const Project& project = {}) {
    std::vector<std::string> lines;
    for (const Finding& f : findings(id, texts, profile, torch, project))
        lines.push_back(std::string(name_of(f.severity)) + " " + std::to_string(f.span.line));
    return lines;
}

// The facts of one kernel with half arguments.
inline std::string kernel(std::string_view facts) {
    return "unit a.cu language=cuda\n"
           "  func 1:1 k display=k<__half> kind=kernel params=[{fp16 pointer name=x} {fp16 pointer "
           "name=out} "
           "{int32 name=n}]\n" +
           std::string(facts);
}

inline std::string host(std::string_view facts) {
    return "unit a.cpp\n  func 1:1 f params=[{tensor name=x}]\n" + std::string(facts);
}

}  // namespace mp::lint::test
