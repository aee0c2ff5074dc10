// MP001 unused-suppression
//
// What   A comment asks for silence where nothing is reported: for rules that ran, over a file that was
//        analysed in full. Or it is not understood, names no rule, or a range has one end.
// Why    The next defect on that line is silenced too, although the comment was not written for it.
// Fix    Remove the comment, or repair it.
// Silent Rules that did not run; comments for other tools; files that did not parse.
// Tests  testdata/lint/MP001.md, tests/analyzer/suppress/suppress_test.cpp

#include <array>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {
namespace {

// Facts hold no comments, so the driver reports this rule. It is listed here so that it can
// be selected, ignored and explained like any other.
void check(const RuleContext&, Findings&) {}

constexpr std::array<std::string_view, 1> kOwnTriggers{"mp-lint"};

}  // namespace

extern constinit const Rule kUnusedSuppression{.id = "MP001",
                                               .name = "unused-suppression",
                                               .severity = Severity::note,
                                               .on_by_default = true,
                                               .confirmed_by = "",
                                               .triggers = {kOwnTriggers},
                                               .check = check};

}  // namespace mp::lint
