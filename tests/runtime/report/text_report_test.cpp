#include "runtime/report/text_report.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/report/sample_run.hpp"
#include "tests/runtime/trace/golden.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;

TEST(TextReport, OfASmallRunIsTheGoldenOne) {
    test::expect_golden(text_report(test::sample_model(), {}), "report.txt");
}

TEST(TextReport, OfALongRunHasItsEndsOnly) {
    mp::trace::Run run;
    run.recordings.resize(1);
    for (int i = 0; i < 10'000; ++i) run.recordings[0].steps.push_back(test::sample_step(i, 0));
    const std::string text = text_report(fold(run, {.tables = true}), {});
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 130);
    EXPECT_THAT(text, HasSubstr("..."));
    EXPECT_THAT(text, HasSubstr("\n9999 "));
}

TEST(TextReport, NearlyAllIsNotAll) {
    mp::trace::Run run;
    run.recordings.resize(1);
    StepRecord s;
    s.step = Step{0};
    s.coverage.shadowed = 999'999;
    s.coverage.unshadowed = 1;
    run.recordings[0].steps = {s};
    EXPECT_THAT(text_report(fold(run, {.tables = true}), {}),
                HasSubstr("99.99 % of float ops, - of their bytes"));
    run.recordings[0].steps[0].coverage = {};
    run.recordings[0].process.mode = Mode::watch;
    EXPECT_THAT(text_report(fold(run, {.tables = true}), {}),
                HasSubstr("coverage   none: mode watch has no fp32 twin"));
}

TEST(TextReport, HostileTextDoesNothingToATerminal) {
    mp::trace::Run run = test::sample_run();
    run.directory = run.recordings[0].process.host = run.recordings[0].notes[0].text =
        "\x1b]0;x\x07\xc2\x9b\xff";
    for (const char c : text_report(fold(run, {.tables = true}), {}))
        ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

}  // namespace
}  // namespace mp::trace
