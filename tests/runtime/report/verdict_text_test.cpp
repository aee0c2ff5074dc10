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
    undeclared.judgement.checks = {{.sentence = "softmax runs in fp32", .evidence = ""}};
    EXPECT_THAT(verdict_text(undeclared.model, undeclared.judgement),
                HasSubstr("\n  -    softmax runs in fp32 (none was seen)\n"));
}

TEST(VerdictText, WithoutFindingsItPasses) {
    const test::Judged run = test::clean_run();
    const std::string text = verdict_text(run.model, run.judgement);
    EXPECT_THAT(text, StartsWith("PASS  nothing found in 60 steps of 2 ranks"));
    EXPECT_THAT(text, Not(HasSubstr("first cause")));
    EXPECT_THAT(text, Not(HasSubstr("loss scale")));
}

TEST(VerdictText, SaysWhetherTheLossIsTheFp32Loss) {
    test::Judged run = test::clean_run();
    StepSummary& last = run.model.steps.back();
    last.loss = 2.31, last.twin_loss = 2.3;
    LossAgreement& loss = run.judgement.loss;
    loss = {.answer = LossAgreement::Answer::agrees,
            .steps = 15,
            .loss = 2.31,
            .twin = 2.3,
            .apart = 0.0043,
            .begins = {}};
    EXPECT_THAT(
        verdict_text(run.model, run.judgement),
        HasSubstr(
            "\n      loss 2.31, fp32 twin 2.3: it is the fp32 loss (+0.43 % over the last 15 steps)\n"));
    loss.apart = 0.09;
    loss.farthest = 0.1;
    EXPECT_THAT(loss_text(run.model, run.judgement), HasSubstr("scatters around the fp32 loss (+9"));
    loss.one_sided = true;
    EXPECT_THAT(loss_text(run.model, run.judgement),
                HasSubstr("it is on one side of the fp32 loss (+9 % over the last 15 steps)"));
    loss.farthest = 0;
    loss.apart = -1e-6;
    EXPECT_THAT(loss_text(run.model, run.judgement), HasSubstr("(within 0.01 % over the last 15 steps)"));
    loss.answer = LossAgreement::Answer::above;
    loss.loss = 5.06;
    loss.begins = Step{40};
    EXPECT_THAT(loss_text(run.model, run.judgement),
                HasSubstr("it is 2.2 times the fp32 loss over the last 15 steps, apart from step 40 on"));
    run.model.coverage.flips = 4096;
    EXPECT_THAT(
        loss_text(run.model, run.judgement),
        HasSubstr("; the twin takes 4,096 choices of the run, so it may not be the fp32 run (--free-ints)"));
    loss.answer = LossAgreement::Answer::lost_in_both;
    EXPECT_THAT(loss_text(run.model, run.judgement), HasSubstr("it is lost, also in fp32"));
    loss.answer = LossAgreement::Answer::not_compared;
    last.has_twin = false;
    EXPECT_EQ(loss_text(run.model, run.judgement), "loss 2.31");
    EXPECT_EQ(loss_text({}, {}), "");
}

TEST(VerdictText, OfSeveralLossesTheOneThatWasJudgedIsShown) {
    test::Judged run = test::clean_run();
    LossAgreement& loss = run.judgement.loss;
    loss = {.answer = LossAgreement::Answer::above, .steps = 15, .loss = 5, .twin = 2, .begins = Step{3}};
    loss.last_loss = 5.5;
    loss.last_twin = 2.5;
    loss.last_backwards = 4;
    loss.optimizer = 1;
    loss.optimizers = 2;
    EXPECT_THAT(
        loss_text(run.model, run.judgement),
        StartsWith(
            "loss 5.5 (optimizer 2 of 2) (sum of 4 backward() calls), fp32 twin 2.5: it is 2.5 times"));
    run.model.coverage.outside = 1;
    EXPECT_EQ(loss_text(run.model, run.judgement), "loss 5.5 (optimizer 2 of 2) (sum of 4 backward() calls)");
}

TEST(VerdictText, CausesOfSkipsComeInTheOrderOfTheirFirstSteps) {
    Judgement judgement;
    for (const auto& [step, cause] : {std::pair(0, SkipCause::forward_overflow),
                                      {3, SkipCause::unknown},
                                      {4, SkipCause::forward_overflow},
                                      {9, SkipCause::scale_too_high}})
        judgement.skips.emplace_back().step = Step{step}, judgement.skips.back().cause = cause;
    using Group = std::pair<SkipCause, std::vector<std::int64_t>>;
    EXPECT_THAT(skips_by_cause(judgement),
                testing::ElementsAre(Group{SkipCause::forward_overflow, {0, 4}},
                                     Group{SkipCause::unknown, {3}}, Group{SkipCause::scale_too_high, {9}}));
}

TEST(VerdictText, KernelsOfTorchStandApart) {
    test::Judged run = test::clean_run();
    Finding note;
    note.rule = "MPT023";
    note.severity = Severity::note;
    note.message = "the kernel introduces 9.0 φ";
    run.judgement.findings = {note, note};
    const std::string text = verdict_text(run.model, run.judgement);
    EXPECT_THAT(text, StartsWith("PASS"));
    EXPECT_THAT(
        text,
        HasSubstr("\nkernels of this torch on this device, not of the program\n  the kernel introduces"));
    EXPECT_THAT(text, Not(HasSubstr("\nfindings\n")));
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
