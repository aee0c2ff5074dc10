#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

std::string guarded(std::string first, std::string second) {
    return "unit a.cpp\n  func 1:1 step usr=step\n"
           "    block to=[{1 condition=" +
           first + "} {2 condition=" + first +
           " when=false}]\n"
           "    block to=[2]\n"
           "    block to=[{3 condition=" +
           second + "} {4 condition=" + second +
           " when=false}]\n"
           "    block to=[4]\n"
           "    block leaves\n"
           "    call 3:5 at::autocast::set_enabled args=[{bool constant=true}] block=1\n"
           "    call 5:5 at::autocast::set_enabled args=[{bool constant=false}] block=3\n";
}

TEST(AutocastRegionLeak, OpenedAndNeverClosedIsAnError) {
    EXPECT_THAT(
        lint("MP110", {"unit a.cpp\n  func 1:1 step usr=step\n"
                       "    call 3:5 at::autocast::set_enabled args=[{bool constant=true}]\n"
                       "    call 4:5 at::matmul op=matmul args=[{tensor} {tensor}] result.shape=tensor\n"}),
        ElementsAre("error 3"));
}

TEST(AutocastRegionLeak, ProcessWideInMainIsANote) {
    EXPECT_THAT(lint("MP110", {"unit a.cpp\n  func 1:5 main usr=c:@F@main\n"
                               "    call 3:5 at::autocast::set_enabled args=[{bool constant=true}]\n"}),
                ElementsAre("note 3"));
}

TEST(AutocastRegionLeak, ClosedOnEveryPathIsSilent) {
    EXPECT_THAT(lint("MP110", {step(), inner("")}), IsEmpty());
}

TEST(AutocastRegionLeak, SetBackToFalseInsideARegionIsAWarningAtTheClosingCall) {
    const std::string nested = inner(
        "call 7:5 at::autocast::set_enabled args=[{bool constant=true}]\n"
        "call 8:5 at::matmul op=matmul args=[{tensor} {tensor}] result.shape=tensor\n"
        "call 9:5 at::autocast::set_enabled args=[{bool constant=false}]\n");
    EXPECT_THAT(lint("MP110", {step(), nested}), ElementsAre("warning 9"));
    EXPECT_THAT(lint("MP110", {nested}), IsEmpty());
}

TEST(AutocastRegionLeak, SameConditionIsBalancedAndAnotherIsNot) {
    EXPECT_THAT(lint("MP110", {guarded("amp", "amp")}), IsEmpty());
    EXPECT_THAT(lint("MP110", {guarded("amp", "other")}), ElementsAre("error 3"));
}

}  // namespace
}  // namespace mp::lint::test
