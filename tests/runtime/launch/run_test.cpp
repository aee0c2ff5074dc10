#include "runtime/launch/run.hpp"

#include <gmock/gmock.h>

#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Preparation : public TemporaryDirectory {
protected:
    Surroundings around(std::vector<std::string> variables = {}) const {
        Surroundings out;
        out.variables = Variables(std::move(variables));
        out.identity.pid = 77;
        out.parent_pid = 5;
        out.working_directory = path();
        out.layout = layout_of(path("prefix/bin/mp-trace"));
        return out;
    }
    void install() const {
        write("prefix/lib/mp-trace/libmptrace_preload.so", "");
        std::filesystem::create_directories(path("prefix/lib/mp-trace/python"));
    }
    // clang-format off: a table
    static RunRequest request() { return {.command = {"true"}, .output = {}, .steps = {}, .ranks = {}, .save_twin = {},
                                          .save_real = {}, .step_range = {}, .adapters = {}}; }
};
// clang-format on

TEST_F(Preparation, DirectoryIsBelowTheWorkingDirectory) {
    EXPECT_EQ(options_of(request(), around())->run_dir, path("mp-trace.77"));
    RunRequest named = request();
    named.output = "out.%p";
    EXPECT_EQ(options_of(named, around())->run_dir, path("out.77"));
    named.output = "/elsewhere/%q{X}";
    EXPECT_EQ(options_of(named, around({"X=../../etc"}))->run_dir, "/elsewhere/_._.._etc");
}

TEST_F(Preparation, PatternsThatCannotBeExpandedAreErrors) {
    for (const char* pattern : {"%q{NOT_SET}", "%q{", "%z", "%"}) {
        RunRequest bad = request();
        bad.output = pattern;
        EXPECT_FALSE(options_of(bad, around())) << pattern;
        bad = request();
        bad.mode = trace::Mode::trajectory;
        bad.save_twin = pattern;
        const auto refused = options_of(bad, around());
        ASSERT_FALSE(refused) << pattern;
        EXPECT_THAT(refused.error().message, HasSubstr("--save-twin"));
    }
}

TEST_F(Preparation, FilesToSaveIntoKeepTheirKeys) {
    RunRequest saving = request();
    saving.mode = trace::Mode::trajectory;
    saving.save_twin = "twin.%r.safetensors";
    saving.save_real = "/abs/%r/real";
    Surroundings there = around();
    there.working_directory = path("100%");
    std::filesystem::create_directory(path("100%"));
    const auto options = options_of(saving, there);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->save_twin, path("100%%/twin.%r.safetensors"))
        << "a '%' of the working directory is no key";
    EXPECT_EQ(options->save_real, "/abs/%r/real");
}

TEST_F(Preparation, FilesThatCannotBeSavedAreErrors) {
    RunRequest saving = request();
    saving.save_twin = "twin";
    EXPECT_THAT(options_of(saving, around()).error().message, HasSubstr("no twin")) << "watch has none";
    saving.mode = trace::Mode::step;
    EXPECT_TRUE(options_of(saving, around()));
    saving.save_twin = "no/such/twin.%r";
    EXPECT_THAT(options_of(saving, around()).error().hint, HasSubstr("mkdir -p"));
    saving.save_twin = path();
    EXPECT_THAT(options_of(saving, around()).error().message, HasSubstr("is a directory"));
}

TEST_F(Preparation, AdaptersAreSearchedFromTheUsersOwnToTheCache) {
    std::filesystem::create_directory(path("mine"));
    RunRequest own = request();
    own.adapters = {"mine"};
    EXPECT_THAT(
        options_of(own, around({"HOME=/h"}))->adapters,
        ElementsAre(path("mine"), path("prefix/lib/mp-trace/adapters"), "/h/.cache/mp-trace/adapters"));
    EXPECT_THAT(options_of(own, around({"HOME=/h", "XDG_CACHE_HOME=/x"}))->adapters.back(),
                "/x/mp-trace/adapters");
    EXPECT_EQ(options_of(own, around())->adapters.size(), 2u) << "no HOME, no cache";
    own.adapters = {"gone"};
    EXPECT_FALSE(options_of(own, around()));
}

TEST_F(Preparation, EnvironmentGainsThreeVariablesAndLosesNone) {
    install();
    const auto environment =
        environment_of(around({"A=1", "LD_PRELOAD=/j.so", "PYTHONPATH=x:y", "B=2"}), "/run/options");
    ASSERT_TRUE(environment);
    EXPECT_THAT(
        environment->entries(),
        ElementsAre("A=1", "LD_PRELOAD=" + path("prefix/lib/mp-trace/libmptrace_preload.so") + ":/j.so",
                    "PYTHONPATH=" + path("prefix/lib/mp-trace/python") + ":x:y", "B=2",
                    "MP_TRACE_OPTIONS=/run/options"));
}

TEST_F(Preparation, TheLibraryForCudaProgramsTakesOnlyFreePlaces) {
    install();
    write("prefix/lib/mp-trace/libmptrace_cuda.so", "");
    const std::string cuda = path("prefix/lib/mp-trace/libmptrace_cuda.so");
    const auto environment =
        environment_of(around({"LD_PRELOAD=/j.so", "NVTX_INJECTION64_PATH=/nsys.so"}), "/run/options");
    ASSERT_TRUE(environment);
    EXPECT_STREQ(environment->get("LD_PRELOAD"),
                 (path("prefix/lib/mp-trace/libmptrace_preload.so") + ":/j.so:" + cuda).c_str());
    EXPECT_STREQ(environment->get("NVTX_INJECTION64_PATH"), "/nsys.so") << "the other tool keeps it";
    EXPECT_STREQ(environment->get("CUDA_INJECTION64_PATH"), cuda.c_str());
    EXPECT_STREQ(environment->get("NCCL_PROFILER_PLUGIN"), cuda.c_str());
    const Variables back = untraced(*environment);
    EXPECT_EQ(back.get("NCCL_PROFILER_PLUGIN"), nullptr);
    EXPECT_STREQ(back.get("LD_PRELOAD"), "/j.so");
    EXPECT_STREQ(back.get("NVTX_INJECTION64_PATH"), "/nsys.so");
    EXPECT_EQ(back.get("CUDA_INJECTION64_PATH"), nullptr);
}

TEST_F(Preparation, ABrokenInstallationIsSeen) {
    EXPECT_THAT(environment_of(around(), "/o").error().hint, HasSubstr("not wholly installed"));
    install();
    EXPECT_TRUE(environment_of(around(), "/o"));
    std::filesystem::remove(path("prefix/lib/mp-trace/python"));
    EXPECT_FALSE(environment_of(around(), "/o"));
}

TEST_F(Preparation, OnlyRanksThatNobodyWaitsForAreLeftOut) {
    RunRequest some = request();
    trace::Identity id;
    id.rank = Rank{3};
    EXPECT_FALSE(is_left_out(some, id));
    some.ranks = {{.first = 0, .last = 1}};
    EXPECT_TRUE(is_left_out(some, id));
    some.mode = trace::Mode::trajectory;
    EXPECT_FALSE(is_left_out(some, id)) << "its twin takes part in the collectives of the others'";
    some.mode = trace::Mode::local;
    id.rank = Rank{1};
    EXPECT_FALSE(is_left_out(some, id));
    id.rank = Rank{};
    EXPECT_FALSE(is_left_out(some, id)) << "outside a launcher the ranks are still to come";
}

TEST(StartLine, SaysModeStepsAndPlace) {
    trace::Options options;
    EXPECT_EQ(start_line(options, "/w/mp-trace.7", "/w"),
              "watching dtypes, loss scale, skipped steps, collectives → mp-trace.7/");
    options.mode = trace::Mode::trajectory;
    EXPECT_EQ(start_line(options, "/elsewhere/run", "/w"), "fp32 twin from step 0 → /elsewhere/run/");
    options.mode = trace::Mode::step;
    options.steps = {.first = 10, .last = 20, .every = 5};
    EXPECT_EQ(start_line(options, "/my run", "/"), "fp32 twin of single steps, steps 10:20:5 → 'my run/'");
}

}  // namespace
}  // namespace mp::launch
