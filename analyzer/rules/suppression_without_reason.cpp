// MP002 suppression-without-reason
//
// What   A comment silences a finding without a reason.
// Why    The next author of the line cannot know whether the suppression is still needed.
// Fix    Write the reason behind the rule.
// Silent Any words, in front of the suppression or behind it; comments for other tools.
// Tests  testdata/lint/MP002.md, tests/analyzer/suppress/suppress_test.cpp

#include <array>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Facts hold no comments, so the driver reports this rule. It is listed here so that it can
// be selected, ignored and explained like any other.
void check(const RuleContext&, Findings&) {}

constexpr std::array<std::string_view, 1> kOwnTriggers{"mp-lint"};

}  // namespace

extern constinit const Rule kSuppressionWithoutReason{.id = "MP002",
                                                      .name = "suppression-without-reason",
                                                      .severity = Severity::note,
                                                      .on_by_default = true,
                                                      .confirmed_by = "",
                                                      .triggers = {kOwnTriggers},
                                                      .check = check};

}  // namespace mp::lint
