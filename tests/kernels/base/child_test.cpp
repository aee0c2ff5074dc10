#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "kernels/base/child.hpp"

namespace mp {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kNoVariables = {"PATH=/usr/bin:/bin"};

ChildEnd shell(const char* script, const ChildLimits& limits = {}) {
    return run_child({.arguments = {"sh", "-c", script}, .environment = kNoVariables, .limits = limits});
}

TEST(RunChild, GivesOutputErrorsAndStatus) {
    const ChildEnd end = shell("echo out; echo err >&2; exit 3");
    EXPECT_TRUE(end.started);
    EXPECT_EQ(end.out, "out\n");
    EXPECT_EQ(end.err, "err\n");
    EXPECT_EQ(end.status, 3);
    EXPECT_FALSE(end.good());
    EXPECT_EQ(describe(end, {}), "exited with status 3");
    EXPECT_TRUE(shell("true").good());
}

TEST(RunChild, SaysWhyAProgramDidNotStart) {
    const ChildEnd end = run_child({.arguments = {"/no/such/interpreter"}});
    EXPECT_FALSE(end.started);
    EXPECT_THAT(describe(end, {}), HasSubstr("No such file"));
    EXPECT_FALSE(run_child({.arguments = {"/dev/null"}}).started);
    EXPECT_FALSE(run_child({}).started);
    EXPECT_TRUE(shell("exit 127").started);
}

TEST(RunChild, NamesTheSignalThatKilledIt) {
    const ChildEnd end = shell("kill -SEGV $$");
    EXPECT_EQ(end.signal, SIGSEGV);
    EXPECT_THAT(describe(end, {}), HasSubstr("killed by signal 11"));
}

// Members of a process group that are alive; one that was killed and waits for its parent is not.
std::size_t alive_in(long group) {
    std::size_t alive = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        std::ifstream file(entry.path() / "stat");
        std::string text;
        std::getline(file, text, '\0');
        text.erase(0, std::min(text.rfind(") "), text.size()));  // the name may hold anything
        std::array<char, 3> state{};
        long parent = 0, of_group = 0;
        if (std::sscanf(text.c_str(), ") %2s %ld %ld", state.data(), &parent, &of_group) != 3) continue;
        alive += of_group == group && state[0] != 'Z' && state[0] != 'X';
    }
    return alive;
}

// Whether nothing of the process group lives whose number a child printed; signals take a moment.
bool is_gone(const ChildEnd& end) {
    const long group = std::atol(end.out.c_str());
    if (group <= 1) return false;
    for (int i = 0; i < 500 && alive_in(group) > 0; ++i) usleep(10'000);
    return alive_in(group) == 0;
}

TEST(RunChild, KillsAChildThatHangsAndAllThatItStarted) {
    const ChildLimits limits{.milliseconds = 200};
    const ChildEnd end = shell("echo $$; sleep 1000 & sleep 1000", limits);
    EXPECT_TRUE(end.timed_out);
    EXPECT_EQ(describe(end, limits), "did not answer within 1 s");
    EXPECT_TRUE(is_gone(end)) << "a grandchild outlived its time";
}

TEST(RunChild, AGrandchildThatKeepsThePipeOpenIsNotWaitedFor) {
    const ChildEnd end = shell("echo $$; sleep 1000 & exit 0", {.milliseconds = 30'000});
    EXPECT_TRUE(end.good());
    EXPECT_TRUE(is_gone(end)) << "the grandchild lives on";
}

TEST(RunChild, OutputWithoutEndIsCutAndDoesNotHoldUpTheClock) {
    const ChildEnd end = shell("yes", {.milliseconds = 300, .bytes = 1000});
    EXPECT_TRUE(end.timed_out);
    EXPECT_EQ(end.out.size(), 1000u);
    const ChildEnd errors = shell("yes e | head -c 100000 >&2; echo last >&2", {.error_bytes = 100});
    EXPECT_EQ(errors.err.size(), 100u);
    EXPECT_TRUE(errors.err.ends_with("last\n"));
}

TEST(RunChild, ALongAnswerArrivesWhole) {
    EXPECT_EQ(shell("head -c 700000 /dev/zero | tr '\\0' x").out.size(), 700000u);
}

TEST(RunChild, TheEnvironmentIsOursUnlessGiven) {
    ::setenv("MP_CHILD_TEST", "seen", 1);
    EXPECT_EQ(run_child({.arguments = {"sh", "-c", "echo $MP_CHILD_TEST"}}).out, "seen\n");
    EXPECT_EQ(shell("echo $MP_CHILD_TEST").out, "\n");
}

TEST(RunChild, OutputCanBeTakenWhileItRuns) {
    std::string said;
    const ChildEnd end = run_child({.arguments = {"sh", "-c", "echo a; echo b >&2; echo c"},
                                    .on_output = [&said](std::string_view text) { said += text; }});
    EXPECT_TRUE(end.good());
    EXPECT_EQ(said, "a\nb\nc\n");
    EXPECT_EQ(end.out + end.err, "");
}

TEST(RunChild, AChildOfOurGroupStaysInIt) {
    const std::string ours = std::to_string(::getpgrp());
    const auto group_of = [](bool own_group) {
        return run_child(
                   {.arguments = {"sh", "-c", "ps -o pgid= -p $$ | tr -d ' \n'"}, .own_group = own_group})
            .out;
    };
    EXPECT_EQ(group_of(false), ours);
    EXPECT_NE(group_of(true), ours);
}

TEST(RunTool, GivesInputAndTakesBothOutputs) {
    const auto child = run_tool({"sh", "-c", "cat; echo no >&2; pwd; exit 3"}, "/", "hello\n");
    ASSERT_TRUE(child);
    EXPECT_EQ(child->status, 3);
    EXPECT_EQ(child->out, "hello\n/\n");
    EXPECT_EQ(child->err, "no\n");
}

TEST(RunTool, NothingBlocksOnMuchText) {
    const std::string much(5 << 20, 'x');
    const auto child = run_tool({"cat"}, {}, much);
    ASSERT_TRUE(child);
    EXPECT_EQ(child->out, much);
    EXPECT_TRUE(run_tool({"true"}, {}, much)->good());
}

TEST(RunTool, AMissingProgramAndAMissingDirectoryAreErrors) {
    EXPECT_THAT(run_tool({"no-such-program-here"}).error().message,
                HasSubstr("no-such-program-here cannot be run"));
    EXPECT_FALSE(run_tool({"true"}, "/no/such/directory"));
    EXPECT_EQ(run_tool({"sh", "-c", "kill -9 $$"})->signal, SIGKILL);
}

TEST(RunChild, StandardInputIsClosed) { EXPECT_TRUE(shell("! read line").good()); }

TEST(RunForked, ReturnsWhatTheProbeReturned) {
    const Result<std::string> answer = run_forked([] { return std::string("a\0b", 3); }, {});
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, std::string("a\0b", 3));
    const Result<std::string> nothing = run_forked([] { return std::string(); }, {});
    ASSERT_TRUE(nothing);
    EXPECT_EQ(*nothing, "");
}

TEST(RunForked, AProbeThatCrashesHangsExitsOrThrowsIsAnError) {
    const auto why = [](const std::function<std::string()>& probe, const ChildLimits& limits) {
        const Result<std::string> answer = run_forked(probe, limits);
        return answer ? "no error" : answer.error().message;
    };
    EXPECT_THAT(why(
                    []() -> std::string {
                        std::raise(SIGKILL);
                        return "";
                    },
                    {}),
                HasSubstr("signal 9"));
    EXPECT_THAT(why(
                    []() -> std::string {
                        for (;;) pause();
                    },
                    {.milliseconds = 100}),
                HasSubstr("did not answer"));
    EXPECT_THAT(why([]() -> std::string { _exit(0); }, {}), HasSubstr("without an answer"));
    EXPECT_THAT(why([]() -> std::string { _exit(7); }, {}), HasSubstr("status 7"));
    EXPECT_THAT(why([]() -> std::string { std::abort(); }, {}), HasSubstr("signal 6"));
}

TEST(RunForked, WhatALibraryPrintsIsNoPartOfTheAnswer) {
    const Result<std::string> answer = run_forked(
        []() -> std::string {
            (void)!write(STDOUT_FILENO, "noise", 5);
            std::puts("noise");
            std::fflush(stdout);
            return "answer";
        },
        {});
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, "answer");
}

}  // namespace
}  // namespace mp
