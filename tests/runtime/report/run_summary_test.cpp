#include "runtime/report/run_summary.hpp"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/report/sections.hpp"
#include "runtime/report/verdict_text.hpp"
#include "runtime/trace/note_texts.hpp"
#include "tests/runtime/report/sample_models.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;
using testing::Not;

void expect_promises(const std::string& text) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 8);
    std::istringstream lines(text);
    std::string line, last;
    while (std::getline(lines, line)) {
        EXPECT_TRUE(line.starts_with("mp-trace: ")) << line;
        last = line;
    }
    EXPECT_THAT(last, HasSubstr("next: mp-trace report"));
    EXPECT_TRUE(text.ends_with("\n"));
    for (const char c : text) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
}

TEST(RunSummary, KeepsItsPromisesForEveryRun) {
    for (const test::Judged& run : {test::clean_run(), test::overflow_run(), test::stagnating_run(),
                                    test::running_sum_run(), test::watched_run(), test::hostile_run()})
        expect_promises(run_summary(run.model, run.judgement));
    expect_promises(run_summary({}, {}));
}

// Counts of steps are signed and counts of findings are not; both are grouped.
TEST(RunSummary, LargeCountsAreGrouped) {
    RunModel model;
    model.step_count = 12'000;
    EXPECT_THAT(run_summary(model, {}), HasSubstr("12,000 steps, 0 ranks"));
    EXPECT_THAT(headline_of(model, {}), HasSubstr("12,000 steps of 0 ranks"));
}

TEST(RunSummary, SaysWhatOverflowedWhoSkippedAndWhatDivergesMost) {
    const test::Judged run = test::overflow_run();
    const std::string text = run_summary(run.model, run.judgement);
    EXPECT_THAT(text, HasSubstr("60 steps, 2 ranks"));
    EXPECT_THAT(text, HasSubstr("4 steps skipped"));
    EXPECT_THAT(text,
                HasSubstr("first overflow   blocks.2.mlp.up  aten::addmm  forward  step 17  rank 1  fp16"));
    EXPECT_THAT(text, HasSubstr("skipped          steps 17, 34-36: forward overflow"));
    EXPECT_THAT(text, HasSubstr("diverging most   blocks.2.mlp.up"));
    EXPECT_THAT(text, HasSubstr("gradients are reduced in fp32: all_reduce in fp16"));
}

TEST(RunSummary, DoesNotReadAsNoStepWhereStepZeroWasSkipped) {
    test::Judged run = test::overflow_run();
    run.judgement.skips.resize(1);
    run.judgement.skips[0].step = Step{0};
    EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr("skipped          step 0: "));
}

TEST(RunSummary, SaysWhatWasNotSeenOfAProgramWithoutTorch) {
    test::Judged run = test::watched_run();
    run.model.notes.clear();
    const auto note = [&run](NoteKind kind, std::string text) {
        run.model.notes.emplace_back();
        run.model.notes.back().kind = kind;
        run.model.notes.back().text = std::move(text);
    };
    note(NoteKind::not_observed, std::string(kSeenByName) + "relu(__half*, int) writes fp16");
    note(NoteKind::not_observed, std::string(kSeenByName) + "sgd");
    note(NoteKind::not_observed, kLooseSums);
    note(NoteKind::not_observed, "no NVTX range names a step");
    note(NoteKind::disarmed, "kernels are not seen");
    note(NoteKind::end, "");
    run.model.coverage.by_name = 7;
    EXPECT_THAT(run_summary(run.model, run.judgement), Not(HasSubstr("not seen")));
    for (RankFacts& r : run.model.ranks) r.process.framework = kRawFramework;
    const std::string text = run_summary(run.model, run.judgement);
    EXPECT_THAT(text, HasSubstr("  not seen         no NVTX range names a step (and 1 more note)\n"));
    EXPECT_THAT(text, HasSubstr("  by name only     2 kernels in 7 calls: their values are not known\n"));
    expect_promises(text);
}

TEST(RunSummary, SaysThatWatchComparesNothing) {
    test::Judged run = test::clean_run();
    run.model.mode = Mode::watch;
    run.model.coverage = {};
    const std::string open = ", no twin (--mode trajectory compares with fp32)\n";
    EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr(" · nothing found" + open));
    EXPECT_THAT(verdict_text(run.model, run.judgement), HasSubstr("60 steps, 2 ranks" + open));
    for (RankFacts& r : run.model.ranks) r.process.framework = kRawFramework;
    EXPECT_THAT(run_summary(run.model, run.judgement), Not(HasSubstr("no twin")));
}

TEST(RunSummary, SaysWhoseStepsWereCounted) {
    for (const std::string_view beginning : {kCountsAgain, kPartOfAStep}) {
        test::Judged run = test::clean_run();
        EXPECT_THAT(run_summary(run.model, run.judgement), Not(HasSubstr("  steps  ")));
        run.model.notes.emplace_back();
        run.model.notes.back().text = std::string(beginning) + "40";
        const std::string line = std::string(beginning) + "40\n";
        EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr("  steps            " + line));
        EXPECT_THAT(verdict_text(run.model, run.judgement), HasSubstr("      steps: " + line));
    }
}

TEST(RunSummary, CountsOneRankAsOne) {
    test::Judged run = test::overflow_run();
    run.model.ranks.resize(1);
    run.model.skipped_steps = 1;
    const std::string text = run_summary(run.model, run.judgement);
    EXPECT_THAT(text, HasSubstr("60 steps, 1 rank ·"));
    EXPECT_THAT(text, HasSubstr("1 step skipped"));
}

TEST(RunSummary, NamesTheRanksItDoesNotKnowAbout) {
    test::Judged run = test::watched_run();
    run.judgement = judge(run.model);
    const std::string text = run_summary(run.model, run.judgement);
    EXPECT_THAT(text, HasSubstr("2 ranks left no recording: 2, 3"));
    EXPECT_THAT(text, HasSubstr("killed, crashed or still running: rank 1"));
}

TEST(RunSummary, SaysNothingOfARankThatIsStillEnding) {
    test::Judged run = test::watched_run();
    for (RankFacts& r : run.model.ranks) r.running = !r.ended;
    run.judgement = judge(run.model);
    EXPECT_THAT(run_summary(run.model, run.judgement), Not(HasSubstr("killed, crashed")));
}

TEST(RunSummary, JoinsMicroBatchesAndShowsNoTwinOfWhatItDidNotSee) {
    test::Judged run = test::clean_run();
    StepSummary& last = run.model.steps.back();
    EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr("fp32 twin"));
    last.backwards = 4;
    run.model.coverage.outside = 2;
    const std::string text = run_summary(run.model, run.judgement);
    EXPECT_THAT(text, HasSubstr("(sum of 4 backward() calls)"));
    EXPECT_THAT(text, Not(HasSubstr("fp32 twin")));
}

TEST(RunSummary, CutsNoFinding) {
    test::Judged run = test::clean_run();
    const std::string message(500, 'x');
    Finding f;
    f.rule = "MPT001";
    f.severity = Severity::error;
    f.message = message + " end";
    run.judgement.findings.insert(run.judgement.findings.begin(), f);
    EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr(f.message));
}

TEST(RunSummary, TheUsualCostOfAnOpIsNoNews) {
    test::Judged run = test::clean_run();
    Rung rung;
    rung.layer = "patch_embed";
    rung.op = "aten::convolution_backward";
    rung.phase = Phase::backward;
    rung.dtype = DType::bf16;
    rung.introduced = 1.7;
    run.judgement.ladder = {rung};
    EXPECT_THAT(run_summary(run.model, run.judgement), Not(HasSubstr("diverging")));
    run.judgement.ladder[0].op = "aten::mm";
    EXPECT_THAT(run_summary(run.model, run.judgement), HasSubstr("diverging most   patch_embed"));
}

TEST(RunSummary, ASoundRunIsShort) {
    test::Judged run = test::clean_run();
    run.model.coverage.unshadowed = 0;
    run.judgement.checks.push_back(
        {.answer = Check::Answer::no, .sentence = "gradients are fp32", .evidence = ""});
    const std::string text = run_summary(run.model, run.judgement);
    for (const char* line : {"first cause", "diverging most", "not so"})
        EXPECT_THAT(text, Not(HasSubstr(line)));
    EXPECT_THAT(text, Not(HasSubstr("not known")));
    EXPECT_THAT(text, HasSubstr(" · nothing found\n"));
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace mp::trace
