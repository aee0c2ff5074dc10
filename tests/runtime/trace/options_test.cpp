#include "runtime/trace/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/trace/samples.hpp"

namespace mp::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Options everything() {
    Options o;
    o.run_dir = "/runs/a:b\\c\nd=e";
    o.mode = Mode::trajectory;
    o.steps = {.first = 10, .last = 100, .every = 5};
    o.ranks = {{0, 3}, {8, 8}};
    o.budget = 123456789;
    o.overhead = 0.03;
    o.adapters = {"/opt/x:y", "/usr/lib/mp-trace"};
    o.save_twin = "twin-%r.safetensors";
    o.save_real = "real-%q{A:B}.safetensors";
    o.eager = o.device_times = o.free_ints = o.twin_noise = o.quiet = true;
    return o;
}

TEST(Options, ComeBackAsTheyWereWritten) {
    const auto o = options_from_text(to_text(everything()));
    ASSERT_TRUE(o);
    EXPECT_EQ(o->run_dir, everything().run_dir);
    EXPECT_EQ(o->mode, Mode::trajectory);
    EXPECT_EQ(o->steps.first, 10);
    EXPECT_EQ(o->steps.last, 100);
    EXPECT_EQ(o->steps.every, 5);
    ASSERT_EQ(o->ranks.size(), 2u);
    EXPECT_EQ(o->ranks[0].last, 3);
    EXPECT_EQ(o->ranks[1].first, 8);
    EXPECT_EQ(o->budget, 123456789u);
    EXPECT_EQ(o->overhead, 0.03);
    EXPECT_EQ(o->adapters, everything().adapters);
    EXPECT_EQ(o->save_twin, "twin-%r.safetensors");
    EXPECT_EQ(o->save_real, "real-%q{A:B}.safetensors");
    EXPECT_TRUE(o->eager && o->device_times && o->free_ints && o->twin_noise && o->quiet);
    EXPECT_EQ(to_text(*o), to_text(everything()));
}

TEST(Options, DefaultsComeBackToo) {
    const auto o = options_from_text(to_text(Options{}));
    ASSERT_TRUE(o);
    EXPECT_EQ(to_text(*o), to_text(Options{}));
    EXPECT_THAT(o->ranks, IsEmpty());
    EXPECT_THAT(o->adapters, IsEmpty());
    EXPECT_TRUE(o->steps.contains(Step{0}));
}

TEST(Options, ANewlineInAValueStaysOnItsLine) {
    Options o;
    o.run_dir = "a\nmode=off";
    EXPECT_THAT(to_text(o), HasSubstr("run_dir=a\\nmode=off\n"));
    const auto back = options_from_text(to_text(o));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->mode, Mode::watch);
    EXPECT_EQ(back->run_dir, "a\nmode=off");
}

TEST(Options, KeysOfANewerLauncherAreIgnored) {
    const auto o = options_from_text("colour=blue:green\nquiet=1\n\nlast=no newline");
    ASSERT_TRUE(o);
    EXPECT_TRUE(o->quiet);
}

TEST(Options, AMalformedValueNamesItsLine) {
    for (const char* line :
         {"quiet=yes",   "mode=fast",     "steps=1:2",   "steps=0:9:0", "steps=-1:9:1",
          "steps=a:b:c", "steps=0:9:1:7", "ranks=3-1",   "ranks=-4",    "ranks=1-",
          "ranks=x",     "budget=1M",     "budget=",     "budget=-1",   "budget=99999999999999999999",
          "overhead=3%", "overhead=2",    "run_dir=a\\", "run_dir=a:b", "no equals sign",
          "eager=2"}) {
        const auto o = options_from_text(std::string("quiet=0\n") + line + "\n");
        ASSERT_FALSE(o) << line;
        EXPECT_THAT(o.error().message, HasSubstr("line 2")) << line;
    }
}

TEST(Options, ASampleOfStepsIsWhatTheRangeSays) {
    const StepRange range{.first = 10, .last = 30, .every = 10};
    EXPECT_FALSE(range.contains(Step{9}));
    EXPECT_TRUE(range.contains(Step{10}));
    EXPECT_FALSE(range.contains(Step{15}));
    EXPECT_TRUE(range.contains(Step{20}));
    EXPECT_FALSE(range.contains(Step{30}));
}

TEST(Options, AFileIsReadAndABadOneIsAnErrorWithItsName) {
    const test::TemporaryDirectory directory;
    test::write_bytes(directory.file("options.1"), to_text(everything()));
    const auto o = read_options(directory.file("options.1"));
    ASSERT_TRUE(o);
    EXPECT_EQ(o->budget, 123456789u);
    EXPECT_THAT(read_options(directory.file("none")).error().message, HasSubstr("none: No such file"));
    EXPECT_THAT(read_options(directory.path()).error().message, HasSubstr("not a regular file"));
    EXPECT_FALSE(read_options("/dev/zero"));
    test::write_bytes(directory.file("empty"), "");
    EXPECT_FALSE(read_options(directory.file("empty")));
    test::write_bytes(directory.file("bad"), "mode=never\n");
    EXPECT_THAT(read_options(directory.file("bad")).error().message, HasSubstr("bad: options line 1"));
}

}  // namespace
}  // namespace mp::trace
