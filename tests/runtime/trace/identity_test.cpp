#include "runtime/trace/identity.hpp"

#include <unistd.h>

#include <cctype>
#include <cstring>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/version.hpp"
#include "runtime/trace/process.hpp"

namespace mp::trace {
namespace {

using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
    return [&variables](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
}

Identity identity(const Variables& variables) { return identity_of_process(environment(variables)); }

struct LauncherCase {
    const char* launcher;
    Variables variables;
    std::int32_t rank, local, world, restart;
    const char* job;
};

// clang-format off: a table
const LauncherCase kCases[] = {
    {"torchrun",
     {{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}, {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_RUN_ID", "abc"}},
     5, 1, 8, 2, "abc"},
    {"srun", {{"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}},
     3, 0, 4, 0, "77"},
    {"openmpi",
     {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
     1, 1, 2, 0, ""},
    {"mpich", {{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}, {"MPI_LOCALRANKID", "2"}}, 6, 2, 7, 0, ""},
    {"", {{"HOME", "/x"}}, -1, -1, -1, 0, ""},
};
// clang-format on

TEST(Identity, OfEachLauncherIsReadFromItsVariables) {
    for (const LauncherCase& c : kCases) {
        const Identity id = identity(c.variables);
        EXPECT_EQ(id.launcher, c.launcher);
        EXPECT_EQ(id.rank.value, c.rank) << c.launcher;
        EXPECT_EQ(id.local_rank, c.local) << c.launcher;
        EXPECT_EQ(id.world_size, c.world) << c.launcher;
        EXPECT_EQ(id.restart, c.restart) << c.launcher;
        EXPECT_EQ(id.job, c.job) << c.launcher;
        EXPECT_EQ(id.pid, ::getpid());
        EXPECT_FALSE(id.host.empty());
    }
}

TEST(Identity, TheLauncherNearestToTheProcessWins) {
    Variables slurm{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}};
    Variables torchrun = slurm;
    torchrun.insert({{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"TORCHELASTIC_RUN_ID", "none"}});
    EXPECT_EQ(identity(torchrun).rank.value, 9);
    EXPECT_EQ(identity(torchrun).job, "77") << "a run id of none is no job";
    // The shell of sbatch has SLURM_PROCID=0 for every child of mpirun.
    Variables mpi = slurm;
    mpi.insert({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
    EXPECT_EQ(identity(mpi).rank.value, 2);
    EXPECT_EQ(identity(mpi).world_size, 3);
}

TEST(Identity, WhatIsNoNumberIsUnknown) {
    for (const char* bad : {"", "x", "1x", "-1", "99999999999", " 1"}) {
        const Identity id = identity({{"RANK", bad}, {"WORLD_SIZE", "2"}});
        EXPECT_FALSE(id.rank.known()) << bad;
        EXPECT_EQ(id.launcher, "") << bad;
    }
    EXPECT_EQ(identity({{"RANK", "0"}, {"WORLD_SIZE", "many"}}).world_size, -1);
}

Identity known() {
    Identity id;
    id.rank = Rank{5};
    id.local_rank = 1;
    id.world_size = 8;
    id.restart = 2;
    id.job = "run/../7";
    id.host = "node one";
    id.pid = 123;
    return id;
}

TEST(Process, NamesTheVersionThatTheToolsPrint) {
    EXPECT_EQ(describe_process({}).adapter, "mp-trace " + std::string(kVersion));
}

TEST(Pattern, EveryKeyIsExpanded) {
    const Variables variables{{"EXP", "a b"}};
    const auto text =
        expand_pattern("%p-%h-%r-%l-%s-%j-%c-%t-%q{EXP}-%%", known(), environment(variables), 1'700'000'000);
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "123-node_one-5-1-8-run_.._7-2-20231114-221320-a_b-%");
}

TEST(Pattern, WhatIsUnknownIsAnX) {
    const auto text = expand_pattern("%r%l%s%j", Identity{}, environment({}), 0);
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "xxxx");
}

TEST(Pattern, AnUnknownKeyOrAnUnsetVariableIsAnError) {
    const Variables variables{{"EXP", "a"}};
    for (const char* pattern : {"%z", "a%", "%q", "%q{EXP", "%qEXP}", "%q{NOT_SET}", "%q{}", "%P"}) {
        const auto text = expand_pattern(pattern, known(), environment(variables), 0);
        ASSERT_FALSE(text) << pattern;
        EXPECT_FALSE(text.error().message.empty());
        EXPECT_FALSE(text.error().hint.empty());
    }
}

TEST(Pattern, NoValueLeadsOutOfTheDirectory) {
    for (const char* value : {"..", "../..", "/etc", ".", "a/../../b", "\n", "x\x1b[2J", "\xff"}) {
        const Variables variables{{"V", value}, {"W", value}};
        const auto text = expand_pattern("%q{V}%q{W}", known(), environment(variables), 0);
        ASSERT_TRUE(text);
        EXPECT_EQ(text->find('/'), std::string::npos) << *text;
        EXPECT_NE(text->front(), '.') << *text;
        for (const char c : *text)
            EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._-", c));
    }
}

TEST(RecordingName, SaysRankRestartHostAndPid) {
    EXPECT_EQ(recording_name(known()), "r5.c2.node_one.p123.mpt");
    Identity nobody;
    nobody.pid = 7;
    EXPECT_EQ(recording_name(nobody), "rx.c0.x.p7.mpt");
    nobody.host = std::string(1000, 'h');
    EXPECT_LT(recording_name(nobody).size(), 100u) << "a file name is at most 255 bytes";
    nobody.host = "../../etc";
    EXPECT_THAT(recording_name(nobody), testing::Not(HasSubstr("/")));
}

}  // namespace
}  // namespace mp::trace
