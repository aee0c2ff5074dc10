// MP002 suppression-without-reason
//
// What   A comment silences a finding and does not say why.
// Why    Whoever changes the line later cannot know whether the reason still holds.
// Fix    Write the reason behind the rule.
// Silent Any words, in front of the suppression or behind it; comments for other tools.
// Tests  testdata/lint/MP002.md, tests/analyzer/suppress/suppress_test.cpp

#include <array>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Comments are no facts: the driver, which sees them, reports this one. It is a rule so that it can
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
