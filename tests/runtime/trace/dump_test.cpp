#include "runtime/trace/dump.hpp"
#include "runtime/trace/info.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trace/display.hpp"
#include "tests/kernels/base/unsafe_text.hpp"
#include "tests/runtime/trace/golden.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace {
namespace {

using test::expect_golden;
using test::sample_note;
using test::sample_process;
using test::sample_step;
using testing::HasSubstr;
using testing::Not;

Recording sample() {
    Recording r;
    r.path = "/runs/x/r1.c3.node-7.p4711.mpt";
    r.bytes = 1'600'000;
    r.has_process = true;
    r.process = sample_process();
    for (int i = 0; i < 3; ++i) r.steps.push_back(sample_step(i, 2));
    r.steps[2].losses[0].real = std::nan("");
    r.notes.push_back(sample_note());
    r.notes.push_back({.kind = NoteKind::lossy, .step = Step{2}, .text = "records were dropped", .count = 3});
    r.problems.push_back({.offset = 1234, .bytes_lost = 56, .why = "damaged bytes"});
    return r;
}

Run sample_run() {
    Run run;
    run.directory = "/runs/x";
    run.recordings = {sample(), sample()};
    run.recordings[0].process.rank = Rank{0};
    run.recordings[0].problems.clear();
    run.recordings[0].notes = {{.kind = NoteKind::end, .step = Step{2}, .text = "", .count = 3}};
    run.recordings[0].process.world_size = run.recordings[1].process.world_size = 3;
    run.missing = {Rank{2}};
    run.unreadable = {{"/runs/x/bad.mpt: not a recording of mp-trace", ""}};
    return run;
}

TEST(Dump, ShowsEveryFieldOfEveryRecord) { expect_golden(dump_text(sample()), "dump.txt"); }

TEST(Info, OfARunFitsAScreen) { expect_golden(info_text(sample_run()), "info_run.txt"); }

TEST(Info, AProcessWithoutRanksHasNoLineOfRanks) {
    mp::trace::Run run = sample_run();
    for (Recording& r : run.recordings) r.process.rank = Rank{}, r.process.world_size = -1;
    EXPECT_EQ(info_text(run).find("\nranks "), std::string::npos) << info_text(run);
}

TEST(Info, OfOneRecording) { expect_golden(info_text(sample()), "info_recording.txt"); }

TEST(Info, OfAHugeRunStillFitsAScreen) {
    mp::trace::Run run = sample_run();
    run.recordings.resize(1, sample());
    for (int i = 0; i < 2000; ++i) run.recordings.push_back(sample());
    for (int i = 0; i < 2000; ++i) run.missing.push_back(Rank{3 + i});
    const std::string text = info_text(run);
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 50);
    EXPECT_THAT(text, HasSubstr("and 1969 more processes"));
}

TEST(Display, HostileNamesAreShownAndDoNothing) {
    Recording r = sample();
    for (const char* hostile : {"\x1b]0;title\x07", "\x1b[2J", "a\nstep 99", "\r",
                                "\xc2\x9b"
                                "31m",
                                "\x9b"
                                "31m",
                                "\x7f", "\xe2\x80\xae", "\xff\xfe", "\xed\xa0\x80", "\xf5MPF"}) {
        r.process.host = r.process.program = r.notes[0].text = r.steps[0].tensors[0].name = hostile;
        for (const std::string& text : {dump_text(r), info_text(r)}) {
            for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << shown(hostile);
            EXPECT_THAT(text, Not(HasSubstr("\nstep 99")));
        }
    }
}

TEST(Display, EscapesTheSameCharactersAsReportsOfMpLint) {
    for (const std::string_view unsafe : kUnsafeCharacters) {
        const std::string text = shown(unsafe);
        EXPECT_EQ(text.find_first_not_of("\\xu{}0123456789abcdef"), std::string::npos) << text;
    }
    for (const std::string_view safe : kSafeCharacters) EXPECT_EQ(shown(safe), safe);
    EXPECT_EQ(shown("\U000e0041"), "\\u{0e0041}");
}

TEST(Display, OrdinaryTextOfAnyLanguageIsLeftAlone) {
    const std::string text = "Schicht.\xc3\xbc \xe5\xb1\xa4 \xf0\x9f\x99\x82";
    EXPECT_EQ(shown(text), text);
    EXPECT_EQ(shown("a\\b\nc"), "a\\\\b\\nc");
    EXPECT_EQ(quoted("say \"x\""), "\"say \\\"x\\\"\"");
    EXPECT_EQ(shown("\xe2\x80\xae"), "\\u{202e}");
    EXPECT_EQ(shown("\xff"), "\\xff");
}

TEST(Display, FloatsReadBackExactly) {
    for (const double v : {0.0, -0.0, 1.0, 0.1, -2.5, 65504.0, 5e-324, 1.7976931348623157e308, 1e-45}) {
        EXPECT_EQ(std::strtod(hex_of(v).c_str(), nullptr), v) << hex_of(v);
        EXPECT_EQ(std::strtod(decimal_of(v).c_str(), nullptr), v) << decimal_of(v);
        EXPECT_EQ(std::signbit(std::strtod(hex_of(v).c_str(), nullptr)), std::signbit(v));
    }
    EXPECT_EQ(hex_of(1.5), "0x1.8p+0");
    EXPECT_EQ(hex_of(-std::nan("")), "nan");
    EXPECT_EQ(hex_of(-INFINITY), "-inf");
    EXPECT_EQ(decimal_of(INFINITY), "inf");
}

TEST(Display, SizesAreReadable) {
    EXPECT_EQ(size_text(1023), "1023 B");
    EXPECT_EQ(size_text(1536), "1.5 KiB");
    EXPECT_EQ(size_text(256u << 20), "256.0 MiB");
}

}  // namespace
}  // namespace mp::trace
