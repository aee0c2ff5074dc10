#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"
#include "scratch.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

Machine with_variables(std::map<std::string, std::string> variables) {
    Machine machine = fake_machine({});
    machine.variable = [variables = std::move(variables)](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    return machine;
}

TEST(LauncherSection, SaysWhichVariablesMadeTheRank) {
    const Section section = launcher_section(probe_launcher(with_variables({{"RANK", "3"},
                                                                            {"LOCAL_RANK", "1"},
                                                                            {"WORLD_SIZE", "8"},
                                                                            {"TORCHELASTIC_RUN_ID", "job7"},
                                                                            {"HOME", "/h"}})));
    EXPECT_EQ(line_of(section, "launcher").value, "torchrun: rank 3 of 8, local rank 1, restart 0");
    EXPECT_THAT(line_of(section, "from the variables").value,
                testing::AllOf(HasSubstr("RANK=3"), HasSubstr("LOCAL_RANK=1"), HasSubstr("WORLD_SIZE=8")));
    EXPECT_THAT(line_of(section, "from the variables").value, testing::Not(HasSubstr("HOME")));
    EXPECT_EQ(line_of(section, "job").value, "job7");
}

TEST(LauncherSection, SlurmIsRecognisedAndSaidToBeUntried) {
    const Section section = launcher_section(probe_launcher(
        with_variables({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "41"}})));
    EXPECT_THAT(line_of(section, "launcher").value, HasSubstr("srun: rank 0 of 2"));
    EXPECT_THAT(line_of(section, "srun and MPICH").value, HasSubstr("not run under Slurm"));
}

TEST(LauncherSection, WithoutALauncherItSaysSo) {
    const Section section = launcher_section(probe_launcher(with_variables({{"RANK", "one"}})));
    EXPECT_THAT(line_of(section, "launcher").value, HasSubstr("none"));
}

Section environment_with(std::map<std::string, std::string> variables) {
    return environment_section(probe_environment(with_variables(std::move(variables))), {});
}

TEST(EnvironmentSection, WhoHasAnInjectionPlaceIsNamed) {
    for (const char* const name :
         {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
        const Line line = line_of(environment_with({{name, "/opt/nsys/lib.so"}}), name);
        EXPECT_EQ(line.verdict, Verdict::warn) << name;
        EXPECT_THAT(line.value, HasSubstr("taken by /opt/nsys/lib.so"));
    }
    EXPECT_EQ(line_of(environment_with({}), "variables").verdict, Verdict::ok);
}

TEST(EnvironmentSection, APreloadIsKeptUnlessItMustComeFirst) {
    EXPECT_EQ(line_of(environment_with({{"LD_PRELOAD", "/usr/lib/libjemalloc.so.2"}}), "LD_PRELOAD").verdict,
              Verdict::ok);
    EXPECT_EQ(line_of(environment_with({{"LD_PRELOAD", "/usr/lib/libasan.so.8"}}), "LD_PRELOAD").verdict,
              Verdict::warn);
    EXPECT_EQ(
        line_of(environment_with({{"LD_PRELOAD", "/opt/nsys/libToolsInjection64.so"}}), "LD_PRELOAD").verdict,
        Verdict::warn);
    EXPECT_THAT(line_of(environment_with({{"LD_PRELOAD", "/x/libmptrace_preload.so"}}), "LD_PRELOAD").value,
                HasSubstr("traced run already"));
}

TEST(EnvironmentSection, SwitchesOfTheCompilerAreReadAsSwitches) {
    EXPECT_EQ(line_of(environment_with({{"TORCHDYNAMO_DISABLE", "1"}}), "TORCHDYNAMO_DISABLE").verdict,
              Verdict::ok);
    EXPECT_EQ(line_of(environment_with({{"TORCHDYNAMO_DISABLE", "0"}}), "TORCHDYNAMO_DISABLE").value, "0");
    EXPECT_EQ(line_of(environment_with({{"MP_TRACE_OPTIONS", "/r/options.1"}}), "MP_TRACE_OPTIONS").verdict,
              Verdict::warn);
}

using Reach = Scratch;

// A fake interpreter: prints what a real one would print about its environment.
constexpr const char* kInterpreter = R"(
case "$LD_PRELOAD" in *libmptrace_preload.so*) preload=true ;; *) preload=false ;; esac
[ "${PYTHONPATH%%:*}" = "$3" ] && shim=true other= || { shim=false; other="$PYTHONPATH/sitecustomize.py"; }
printf '\nmp-trace-doctor:reach {"preload": %s, "shim": %s, "sitecustomize": "%s"}\n' $preload $shim "$other")";

TEST_F(Reach, ThePreloadAndTheShimArriveInTheInterpreter) {
    const std::string preload = file("lib/mp-trace/libmptrace_preload.so", "");
    file("lib/mp-trace/python/sitecustomize.py", "");
    const ReachFacts facts =
        probe_reach(program("python", kInterpreter), preload, directory_ + "/lib/mp-trace/python");
    EXPECT_TRUE(facts.preload_mapped);
    const Section section = environment_section({}, facts);
    EXPECT_EQ(line_of(section, "preload library").verdict, Verdict::ok);
    EXPECT_EQ(line_of(section, "Python shim (layer names)").verdict, Verdict::ok);
}

TEST_F(Reach, AnInterpreterThatCleansItsEnvironmentIsFoundOut) {
    const std::string preload = file("lib/mp-trace/libmptrace_preload.so", "");
    file("lib/mp-trace/python/sitecustomize.py", "");
    const std::string python =
        program("python", "unset LD_PRELOAD; PYTHONPATH=/other\n" + std::string(kInterpreter));
    const Section section =
        environment_section({}, probe_reach(python, preload, directory_ + "/lib/mp-trace/python"));
    const Line line = line_of(section, "preload library");
    EXPECT_EQ(line.verdict, Verdict::no);
    EXPECT_TRUE(line.needed);
    EXPECT_THAT(line.hint, HasSubstr("static, setuid or cleans its environment"));
    EXPECT_THAT(line_of(section, "Python shim (layer names)").value,
                HasSubstr("/other/sitecustomize.py comes first"));
}

// The script itself, in a real interpreter, with a shim that behaves as ours does.
TEST_F(Reach, ARealInterpreterTellsAShimThatRanFromOneThatCameTooLate) {
    if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "there is no /usr/bin/python3";
    const std::string preload = file("libmptrace_preload.so", ""), shim = directory_ + "/lib/mp-trace/python";
    file("lib/mp-trace/python/sitecustomize.py",
         "import os, sys\nsys.path.remove(os.path.dirname(os.path.abspath(__file__)))\n");
    const ReachFacts ran = probe_reach("/usr/bin/python3", preload, shim);
    EXPECT_EQ(ran.fault, "");
    EXPECT_TRUE(ran.shim_ran);
    EXPECT_FALSE(ran.preload_mapped) << "an empty file cannot be mapped";
    file("lib/mp-trace/python/sitecustomize.py", "");
    EXPECT_FALSE(probe_reach("/usr/bin/python3", preload, shim).shim_ran);
    const std::string isolated = program("isolated", "exec /usr/bin/python3 -I \"$@\"");
    EXPECT_FALSE(probe_reach(isolated, preload, shim).shim_ran);
}

TEST_F(Reach, PartsThatAreNotInstalledAreSaid) {
    const Section section =
        environment_section({}, probe_reach("python3", directory_ + "/a", directory_ + "/b"));
    EXPECT_EQ(line_of(section, "preload library").verdict, Verdict::no);
    EXPECT_EQ(line_of(section, "Python shim (layer names)").verdict, Verdict::warn);
    const std::string preload = file("libmptrace_preload.so", "");
    const Section broken = environment_section({}, probe_reach(program("p", "exit 4"), preload, directory_));
    EXPECT_THAT(line_of(broken, "preload library").value, HasSubstr("exited with status 4"));
}

}  // namespace
}  // namespace mp::launch::doctor
