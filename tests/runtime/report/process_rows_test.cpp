#include "runtime/report/process_rows.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/runtime/report/sample_run.hpp"

namespace mp::trace {
namespace {

using test::sample_run;

TEST(ProcessRows, WithoutOpsThereIsNoFraction) {
    EXPECT_LT(fraction_of_ops({}), 0);
    EXPECT_EQ(fraction_of_ops({.shadowed = 3, .unshadowed = 1}), 0.75);
}

TEST(ProcessRows, TheLastOfEqualNotesHoldsWithinAProcessAndProcessesAreAdded) {
    const mp::trace::Run run = sample_run();
    const RunModel model = test::sample_model();
    const auto note = std::ranges::find(model.notes, run.recordings[0].notes[0].text, &RunModel::Note::text);
    ASSERT_NE(note, model.notes.end());
    EXPECT_EQ(note->count, 9u + 11u);
    EXPECT_EQ(note->processes, 2u);
    EXPECT_EQ(note->first.value, 2);
}

TEST(ProcessRows, StepsAreOrderedByNumberThenByRankAndFile) {
    mp::trace::Run run = sample_run();
    std::swap(run.recordings[0].steps[0], run.recordings[0].steps[2]);
    const RunModel model = fold(run, {.tables = true});
    const auto places = steps_of(model);
    ASSERT_EQ(places.size(), 6u);
    for (std::size_t i = 0; i < places.size(); ++i) {
        EXPECT_EQ(places[i].row->step.value, static_cast<std::int64_t>(i / 2));
        EXPECT_EQ(places[i].process->process.rank.value, static_cast<int>(i % 2));
    }
}

TEST(ProcessRows, AModelWithoutTablesHasNoSteps) { EXPECT_TRUE(steps_of(fold(sample_run())).empty()); }

}  // namespace
}  // namespace mp::trace
