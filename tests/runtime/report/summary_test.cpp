#include "runtime/report/summary.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/fold/run_model.hpp"
#include "tests/runtime/report/sample_run.hpp"

namespace mp::trace {
namespace {

using test::sample_run;

Recording recording(std::initializer_list<Coverage> steps) {
    Recording r;
    for (const Coverage& c : steps) r.steps.emplace_back().coverage = c;
    return r;
}

// A recording after a restart can begin at step 40. Its first step seeds every shadow too.
TEST(Summary, SeedsOfTheFirstStepOfARecordingAreNoLostHistory) {
    CoverageSum sum;
    Recording restarted = recording({{.seeds = 5}, {.seeds = 5, .external = 4}});
    restarted.process.restart = 1;
    restarted.steps[0].step = Step{40};
    restarted.steps[1].step = Step{41};
    sum.add(restarted);
    EXPECT_EQ(sum.seeds_after_first, 5u);
    EXPECT_EQ(sum.external_after_first, 4u);
    EXPECT_EQ(sum.sum.seeds, 10u);
    trace::Run run;
    run.recordings = {restarted};
    EXPECT_EQ(fold(run).seeds_after_first, 5u) << "the page and the gate say the same";
}

TEST(Summary, TheWorstLeakIsTheLargestAndANaNIsLarger) {
    CoverageSum sum;
    sum.add(recording({{.worst_leak = 0.5}, {.worst_leak = 2}, {.worst_leak = 1}}));
    EXPECT_EQ(sum.sum.worst_leak, 2.0);
    sum.add(recording({{.worst_leak = std::nan("")}, {.worst_leak = 1}}));
    EXPECT_TRUE(std::isnan(sum.sum.worst_leak));
}

TEST(Summary, WithoutOpsThereIsNoFraction) {
    EXPECT_LT(fraction_of_ops({}), 0);
    EXPECT_EQ(fraction_of_ops({.shadowed = 3, .unshadowed = 1}), 0.75);
}

TEST(Summary, TheLastOfEqualNotesHoldsWithinAProcessAndProcessesAreAdded) {
    const mp::trace::Run run = sample_run();
    const NoteSums notes = notes_of(run.recordings);
    const NoteSum& note = notes.at({NoteKind::not_observed, run.recordings[0].notes[0].text});
    EXPECT_EQ(note.count, 9u + 11u);
    EXPECT_EQ(note.processes, 2u);
    EXPECT_EQ(note.first.value, 2);
}

TEST(Summary, AHistoryKeepsTheLastAndTheWorstAndANaNIsTheWorst) {
    Recording r;
    for (const double error : {1.0, 9.0, 4.0}) {
        StepRecord s;
        s.step = Step{static_cast<std::int64_t>(r.steps.size())};
        TensorRecord t;
        t.name = "w";
        t.error_squares = error;
        t.twin_squares = 1;
        s.tensors = {t};
        r.steps.push_back(s);
    }
    TensorHistory h = tensors_of(r).at({"w", TensorKind::parameter});
    EXPECT_EQ(h.worst, 3.0);
    EXPECT_EQ(h.worst_step.value, 1);
    EXPECT_EQ(h.last_step.value, 2);
    r.steps[0].tensors[0].error_squares = std::nan("");
    h = tensors_of(r).at({"w", TensorKind::parameter});
    EXPECT_TRUE(std::isnan(h.worst));
    EXPECT_EQ(h.worst_step.value, 0);
}

TEST(Summary, StepsAreOrderedByNumberThenByRankAndFile) {
    mp::trace::Run run = sample_run();
    std::swap(run.recordings[0].steps[0], run.recordings[0].steps[2]);
    const auto places = steps_of(run);
    ASSERT_EQ(places.size(), 6u);
    for (std::size_t i = 0; i < places.size(); ++i) {
        EXPECT_EQ(places[i].record->step.value, static_cast<std::int64_t>(i / 2));
        EXPECT_EQ(places[i].recording->process.rank.value, static_cast<int>(i % 2));
    }
}

}  // namespace
}  // namespace mp::trace
