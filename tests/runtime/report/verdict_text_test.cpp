#include "runtime/report/verdict_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/report/sample_models.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(VerdictText, BeginsWithTheVerdictAndTheFirstCause) {
    const test::Judged run = test::overflow_run();
    const std::string text = verdict_text(run.model, run.judgement);
    EXPECT_THAT(text, StartsWith("FAIL  blocks.2.mlp.up overflows fp16"));
    EXPECT_THAT(
        text,
        HasSubstr("\nfirst cause  blocks.2.mlp.up  aten::addmm  forward  step 17  rank 1  train.py:88"));
    EXPECT_THAT(text, HasSubstr("7.9 φ introduced"));
    EXPECT_THAT(text, HasSubstr("12 of 65536 not finite; twin up to 71,304; inputs up to 212"));
    EXPECT_THAT(text, HasSubstr("change: run blocks.2.mlp.up in fp32 or bf16"));
    EXPECT_THAT(text, HasSubstr("also found by mp-lint: MP101"));
    EXPECT_THAT(text, HasSubstr("skipped  17, 34-36: forward overflow"));
    EXPECT_THAT(text, HasSubstr("65,536 from step 0, 32,768 from step 18"));
    EXPECT_THAT(text, HasSubstr("NO   gradients are reduced in fp32"));
    test::Judged undeclared = run;
    for (Check& c : undeclared.judgement.checks) c.violated = false;
    EXPECT_THAT(verdict_text(undeclared.model, undeclared.judgement),
                HasSubstr("no   gradients are reduced in fp32"))
        << "a fact, where no policy says otherwise";
}

TEST(VerdictText, WithoutFindingsItPasses) {
    const test::Judged run = test::clean_run();
    const std::string text = verdict_text(run.model, run.judgement);
    EXPECT_THAT(text, StartsWith("PASS  nothing found in 60 steps of 2 ranks"));
    EXPECT_THAT(text, Not(HasSubstr("first cause")));
    EXPECT_THAT(text, Not(HasSubstr("loss scale")));
}

TEST(VerdictText, TooLittleObservedIsNoPass) {
    const test::Judged run = test::watched_run();
    EXPECT_THAT(verdict_text(run.model, run.judgement),
                StartsWith("INCONCLUSIVE  ranks 2-3 left no recording"));
}

TEST(VerdictText, HostileNamesDoNothingToATerminal) {
    const test::Judged run = test::hostile_run();
    const std::string text = verdict_text(run.model, run.judgement);
    for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f) || c < 0);
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
    EXPECT_THAT(text, Not(HasSubstr(std::string(400, 'A'))));
}

TEST(VerdictText, LongNamesAreCutToAnyLength) {
    for (std::size_t length = 6; length < 60; ++length) {
        const std::string cut = shown_short(std::string(100, 'x') + "\xc3\xa9\xc3\xa9", length);
        EXPECT_LE(cut.size(), std::max<std::size_t>(length, 18)) << length;
        EXPECT_EQ(shown_short(cut, 1000), cut) << "a cut goes between characters";
    }
}

TEST(VerdictText, RangesAreSortedAndFew) {
    EXPECT_EQ(ranges_text({36, 17, 35, 34}), "17, 34-36");
    EXPECT_EQ(ranges_text({}), "");
    EXPECT_EQ(ranges_text({0, 2, 4, 6, 8, 10, 12, 14, 16}), "0, 2, 4, 6, 8, 10, 12, 14, ...");
}

}  // namespace
}  // namespace mp::trace
