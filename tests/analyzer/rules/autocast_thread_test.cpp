#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kStart =
    "call 5:9 threading.Thread kind=constructor args=[{other name=work keyword=target}] "
    "lambdas=[train.work]\n";

std::string work(std::string_view facts) {
    return "unit work.py language=python\n  func 9:5 train.work kind=python params=[{name=x}]\n" +
           std::string(facts);
}

constexpr const char* kMatmul = "call 10:5 torch.matmul op=matmul args=[{tensor name=x}]\n";

TEST(AutocastThread, AThreadStartedInARegionLosesIt) {
    EXPECT_THAT(lint("MP113", {python(open() + kStart + close()), work(kMatmul)}), ElementsAre("warning 5"));
}

TEST(AutocastThread, TheOpThatRunsWithoutItIsShown) {
    const auto found = findings("MP113", {python(open() + kStart + close()), work(kMatmul)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_FALSE(found[0].notes.empty());
    EXPECT_EQ(found[0].notes.back().span.line, 10u);
}

TEST(AutocastThread, ABodyWithItsOwnRegionIsSilent) {
    EXPECT_THAT(lint("MP113", {python(open() + kStart + close()), work(open() + kMatmul + close())}),
                IsEmpty());
}

TEST(AutocastThread, ABodyWithoutSuchOpsIsSilent) {
    EXPECT_THAT(lint("MP113", {python(open() + kStart + close()),
                               work("call 10:5 torch.save args=[{tensor name=x}]\n")}),
                IsEmpty());
}

TEST(AutocastThread, OutsideTheRegionItIsSilent) {
    EXPECT_THAT(lint("MP113", {python(open() + close() + kStart), work(kMatmul)}), IsEmpty());
}

TEST(AutocastThread, OpsAreFoundThroughHelpers) {
    EXPECT_THAT(lint("MP113", {python(open() + kStart + close()),
                               work("call 10:5 train.help callee=train.help args=[{tensor name=x}]\n"),
                               "unit help.py language=python\n  func 1:5 train.help kind=python "
                               "params=[{name=x}]\n" +
                                   std::string(kMatmul)}),
                ElementsAre("warning 5"));
}

TEST(AutocastThread, StdThreadIsJudgedToo) {
    const std::string starter =
        "unit a.cpp\n  func 1:1 step usr=step params=[{tensor name=x}]\n"
        "    call 3:5 at::autocast::set_enabled args=[{bool constant=true}]\n"
        "    call 4:5 std::thread::thread kind=constructor lambdas=[body]\n"
        "    call 5:5 at::autocast::set_enabled args=[{bool constant=false}]\n";
    const std::string body =
        "unit b.cpp\n  func 1:1 body usr=body kind=lambda\n"
        "    call 8:5 at::matmul op=matmul args=[{tensor name=x}]\n";
    EXPECT_THAT(lint("MP113", {starter, body}), ElementsAre("warning 4"));
}

}  // namespace
}  // namespace mp::lint::test
