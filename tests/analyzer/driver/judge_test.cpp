#include "analyzer/driver/judge.hpp"

#include <chrono>

#include <gmock/gmock.h>

#include "kernels/numerics/policy.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Finding finding(std::string_view rule, const char* message) {
    return {.rule = rule, .span = {}, .message = message, .fix = {}, .notes = {}, .function = {}};
}

void late(const RuleContext&, Findings& out) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    out.push_back(finding("MP101", "late"));
}
void at_once(const RuleContext&, Findings& out) {
    out.push_back(finding("MP102", "at once"));
    out.push_back(finding("MP102", "again"));
}

constexpr Rule kLate{.id = "MP101", .name = "late", .confirmed_by = "", .check = late};
constexpr Rule kAtOnce{.id = "MP102", .name = "at-once", .confirmed_by = "", .check = at_once};

std::vector<std::string> said(const std::vector<const Rule*>& rules, int jobs) {
    const Program program = Program::link({});
    const Policies policies = *Policies::load("", {}, "cuda");
    const RuleContext context{.program = program, .policies = policies};
    std::vector<std::string> out;
    for (const Finding& f : judge(rules, context, jobs)) out.push_back(f.message);
    return out;
}

TEST(Judge, TheOrderIsThatOfTheRulesOnAnyNumberOfThreads) {
    for (const int jobs : {-1, 1, 2, 64})
        EXPECT_THAT(said({&kLate, &kAtOnce, &kLate}, jobs), ElementsAre("late", "at once", "again", "late"))
            << jobs;
}

TEST(Judge, NoRuleSaysNothing) { EXPECT_THAT(said({}, 4), IsEmpty()); }

}  // namespace
}  // namespace mp::lint
