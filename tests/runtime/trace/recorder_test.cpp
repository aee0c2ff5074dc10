#include "runtime/trace/recorder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trace/dump.hpp"
#include "runtime/trace/frame.hpp"
#include "runtime/trace/reader.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace mp::trace {
namespace {

namespace fs = std::filesystem;
using test::sample_note;
using test::sample_process;
using test::sample_step;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kPatience = 60'000;  // milliseconds; only a hang takes so long

class RecorderTest : public testing::Test {
protected:
    std::unique_ptr<Recorder> open(Recorder::Limits limits = {}, const std::string& name = "r0.mpt") {
        auto recorder = Recorder::open(directory_.path(), name, limits);
        EXPECT_TRUE(recorder) << recorder.error().message;
        return *std::move(recorder);
    }
    Recording read(const std::string& name = "r0.mpt") const {
        auto recording = read_recording(directory_.file(name));
        EXPECT_TRUE(recording) << recording.error().message;
        return *std::move(recording);
    }

    test::TemporaryDirectory directory_;
};

auto lossy_with(const char* text) {
    return AllOf(Field(&NoteRecord::kind, NoteKind::lossy), Field(&NoteRecord::text, HasSubstr(text)));
}

TEST_F(RecorderTest, WhatIsRecordedIsRead) {
    Recording expected;
    {
        const auto recorder = open();
        recorder->process(expected.process = sample_process());
        for (int i = 0; i < 50; ++i) recorder->step(expected.steps.emplace_back(sample_step(i, i)));
        recorder->note(expected.notes.emplace_back(sample_note()));
        EXPECT_TRUE(recorder->flush(kPatience));
        EXPECT_EQ(recorder->dropped(), 0u);
    }
    expected.has_process = true;
    EXPECT_EQ(dump_text(read()), dump_text(expected));
}

TEST_F(RecorderTest, DestructionWritesWhatIsQueued) {
    {
        const auto recorder = open();
        for (int i = 0; i < 1000; ++i) recorder->step(sample_step(i));
    }
    EXPECT_EQ(read().steps.size(), 1000u);
}

TEST_F(RecorderTest, AnExistingNameIsNeverOverwritten) {
    test::write_bytes(directory_.file("r0.mpt"), "precious");
    fs::create_symlink("/dev/null", directory_.file("r0.2.mpt"));
    EXPECT_EQ(open()->path(), directory_.file("r0.3.mpt"));
    EXPECT_EQ(test::bytes_of(directory_.file("r0.mpt")), "precious");
}

TEST_F(RecorderTest, AnImpossibleFileIsAnErrorAndLeavesNothing) {
    for (const char* name : {"", "../r0.mpt", "a/b.mpt"})
        EXPECT_FALSE(Recorder::open(directory_.path(), name, {})) << name;
    const auto missing = Recorder::open(directory_.file("none"), "r0.mpt", {});
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
    EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(RecorderTest, TheDescriptorIsHighAndClosedOnExec) {
    const auto recorder = open();
    int found = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (fs::read_symlink(entry.path(), gone) != recorder->path()) continue;
        const int fd = std::stoi(entry.path().filename());
        EXPECT_GE(fd, 512);
        EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
        ++found;
    }
    EXPECT_EQ(found, 1);
}

TEST_F(RecorderTest, TheWriterThreadBlocksEverySignalAndTheCallerKeepsItsMask) {
    sigset_t before, after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const auto recorder = open();
    recorder->flush(kPatience);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int s = 1; s < 32; ++s) EXPECT_EQ(::sigismember(&before, s), ::sigismember(&after, s)) << s;
    int found = 0;
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
        std::string name, line;
        std::ifstream(task.path() / "comm") >> name;
        if (name != "mp-trace") continue;
        ++found;
        std::ifstream status(task.path() / "status");
        while (std::getline(status, line)) {
            if (!line.starts_with("SigBlk:")) continue;
            const std::uint64_t blocked = std::stoull(line.substr(8), nullptr, 16);
            for (const int s :
                 {SIGXFSZ, SIGPIPE, SIGALRM, SIGTERM, SIGINT, SIGUSR1, SIGSEGV, SIGPROF, SIGCHLD})
                EXPECT_TRUE(blocked >> (s - 1) & 1) << s;
        }
    }
    EXPECT_EQ(found, 1);
}

TEST_F(RecorderTest, AFullQueueDropsCountsAndSaysSo) {
    constexpr int kMostSteps = 200'000;  // a writer that gets all of a core may keep up with thousands
    int steps = 0;
    std::uint64_t dropped = 0;
    {
        const auto recorder = open({.file_bytes = 256u << 20, .queue_bytes = 20'000});
        while (steps < 1000 || (recorder->dropped() == 0 && steps < kMostSteps))
            recorder->step(sample_step(steps++, 20));
        recorder->flush(kPatience);
        dropped = recorder->dropped();
    }
    EXPECT_GT(dropped, 0u);
    const Recording r = read();
    EXPECT_EQ(r.steps.size() + dropped, static_cast<std::size_t>(steps));
    EXPECT_THAT(r.problems, IsEmpty());
    EXPECT_THAT(r.notes, Contains(lossy_with("queue of 20000 bytes was full")));
    std::uint64_t told_dropped = 0, told_short = 0, without_ops = 0;
    for (const NoteRecord& n : r.notes) {
        if (n.text.starts_with("records were dropped")) told_dropped = n.count;
        if (n.text.starts_with("steps lost their ops")) told_short = n.count;
    }
    for (const StepRecord& s : r.steps) without_ops += s.ops.empty();
    EXPECT_EQ(told_dropped, dropped) << "the last of these notes has the final count";
    EXPECT_GE(told_short, without_ops);
}

TEST_F(RecorderTest, AStepLargerThanTheQueueLosesItsOpsThenItsTensors) {
    {
        const auto recorder = open({.file_bytes = 256u << 20, .queue_bytes = 20'000});
        StepRecord step = sample_step(0, 40);
        recorder->step(step);
        recorder->flush(kPatience);
        step.step = Step{1};
        step.tensors.resize(200, step.tensors.front());
        recorder->step(step);
        EXPECT_EQ(recorder->dropped(), 0u);
    }
    const Recording r = read();
    ASSERT_EQ(r.steps.size(), 2u);
    StepRecord expected = sample_step(0, 40);
    expected.ops.clear();
    Recording a, b;
    a.steps = {r.steps[0]};
    b.steps = {expected};
    EXPECT_EQ(dump_text(a), dump_text(b));
    EXPECT_TRUE(r.steps[1].tensors.empty());
    EXPECT_EQ(r.steps[1].losses.size(), 2u);
    EXPECT_THAT(r.notes, Contains(lossy_with("steps lost their ops or tensors")));
}

TEST_F(RecorderTest, ARecordLargerThanTheQueueIsDropped) {
    {
        const auto recorder = open({.file_bytes = 256u << 20, .queue_bytes = 2000});
        recorder->note(sample_note(std::string(3000, 'n')));
        recorder->step(sample_step(1, 0));
        EXPECT_EQ(recorder->dropped(), 1u);
    }
    ASSERT_EQ(read().steps.size(), 1u);
    EXPECT_EQ(read().steps[0].step.value, 1);
}

TEST_F(RecorderTest, NearTheEndOfTheBudgetTensorsGoFirstThenTheRest) {
    constexpr std::uint64_t kBudget = 100'000;
    constexpr int kSteps = 3000;
    std::uint64_t dropped = 0;
    {
        const auto recorder = open({.file_bytes = kBudget, .queue_bytes = 64u << 20});
        for (int i = 0; i < kSteps; ++i) recorder->step(sample_step(i, 50));
        EXPECT_FALSE(recorder->flush(kPatience));
        dropped = recorder->dropped();
    }
    EXPECT_LE(fs::file_size(directory_.file("r0.mpt")), kBudget);
    EXPECT_GT(fs::file_size(directory_.file("r0.mpt")), kBudget * 9 / 10);
    const Recording r = read();
    EXPECT_THAT(r.problems, IsEmpty());
    EXPECT_EQ(r.steps.size() + dropped, static_cast<std::size_t>(kSteps));
    EXPECT_EQ(r.steps.front().tensors.size(), 50u);
    EXPECT_EQ(r.steps.back().tensors.size(), 0u);
    EXPECT_EQ(r.steps.back().losses.size(), 2u);
    EXPECT_GT(r.steps.back().coverage.ops, 0u);
    int without = 0;
    for (const StepRecord& s : r.steps) {
        EXPECT_FALSE(without && !s.tensors.empty()) << "tensors do not come back at step " << s.step.value;
        without += s.tensors.empty();
    }
    EXPECT_GT(without, 30) << "an eighth of the budget is theirs";
    EXPECT_FALSE(r.steps.front().ops.empty());
    EXPECT_TRUE(r.steps.back().ops.empty());
    int without_ops = 0;
    for (const StepRecord& s : r.steps) {
        EXPECT_FALSE(without_ops && !s.ops.empty()) << "ops do not come back at step " << s.step.value;
        without_ops += s.ops.empty();
    }
    EXPECT_GT(without_ops, without) << "ops go before tensors";
    EXPECT_THAT(r.notes, Contains(lossy_with("ops are left out")));
    EXPECT_THAT(r.notes, Contains(lossy_with("tensors are left out")));
    EXPECT_THAT(r.notes, Contains(lossy_with("recording stopped")));
}

TEST_F(RecorderTest, ABudgetTooSmallForTheNamesStillHoldsTheSteps) {
    {
        const auto recorder = open({.file_bytes = 1, .queue_bytes = 64u << 20});
        for (int i = 0; i < 10; ++i) {
            StepRecord step = sample_step(i, 4000);
            // Names that do not compress.
            for (TensorRecord& t : step.tensors) t.name += std::to_string(std::hash<std::string>()(t.name));
            recorder->step(step);
        }
    }
    const Recording r = read();
    EXPECT_EQ(r.steps.size(), 10u);
    EXPECT_THAT(r.problems, IsEmpty());
    EXPECT_LE(r.bytes, 16384u);
}

TEST_F(RecorderTest, RecordsOfManyThreadsAreWholeAndAllThere) {
    constexpr int kThreads = 8, kEach = 200;
    {
        const auto recorder = open();
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&recorder, t] {
                for (int i = 0; i < kEach; ++i) {
                    recorder->step(sample_step(t * kEach + i, 5));
                    if (i % 50 == 0) recorder->note(sample_note("from thread " + std::to_string(t)));
                    if (i % 70 == 0) recorder->flush(1);
                }
            });
        }
        for (std::thread& t : threads) t.join();
        EXPECT_TRUE(recorder->flush(kPatience));
    }
    const Recording r = read();
    EXPECT_THAT(r.problems, IsEmpty());
    std::vector<bool> seen(kThreads * kEach);
    for (const StepRecord& s : r.steps) seen[static_cast<std::size_t>(s.step.value)] = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kThreads * kEach);
    EXPECT_EQ(r.notes.size(), static_cast<std::size_t>(kThreads * kEach / 50));
}

TEST_F(RecorderTest, AForkedChildWritesNothingAndEndsNormally) {
    {
        const auto recorder = open();
        for (int i = 0; i < 100; ++i) {
            recorder->step(sample_step(i));
            const pid_t child = ::fork();
            if (child == 0) {
                {
                    // Half of the children come from a fork without handlers.
                    if (i % 2) recorder->abandon_after_fork();
                    for (int k = 0; k < 3 && i % 2; ++k) recorder->step(sample_step(1'000'000));
                    if (recorder->flush(10)) ::_exit(1);
                    recorder->~Recorder();
                }
                ::_exit(0);
            }
            int status = -1;
            ASSERT_EQ(::waitpid(child, &status, 0), child);
            EXPECT_EQ(status, 0);
        }
    }
    const Recording r = read();
    EXPECT_EQ(r.steps.size(), 100u);
    EXPECT_THAT(r.problems, IsEmpty());
    for (const StepRecord& s : r.steps) EXPECT_LT(s.step.value, 100);
}

TEST_F(RecorderTest, NamesAreStoredOnceAndRepeatedAfterAMegabyte) {
    constexpr int kSteps = 400;
    {
        const auto recorder = open({.file_bytes = 256u << 20, .queue_bytes = 256u << 20});
        for (int i = 0; i < kSteps; ++i) recorder->step(test::sample_step_without_ops(i, 200));
    }
    const std::string bytes = test::bytes_of(directory_.file("r0.mpt"));
    EXPECT_LT(bytes.size(), static_cast<std::size_t>(kSteps) * 200 * 40) << "40 bytes a tensor";
    int names = 0, steps = 0;
    for (std::size_t at = kFileHeaderSize; at < bytes.size();) {
        const auto header = read_frame_header(bytes.data() + at);
        ASSERT_TRUE(header);
        names += header->kind == static_cast<std::uint8_t>(FrameKind::names);
        steps += header->kind == static_cast<std::uint8_t>(FrameKind::step);
        at += kFrameOverhead + header->stored;
    }
    EXPECT_EQ(steps, kSteps);
    EXPECT_GE(names, 2);
    EXPECT_LE(names, 3);
}

TEST_F(RecorderTest, TheFileMayBeRemovedOrTruncatedByOthersMeanwhile) {
    const auto recorder = open();
    recorder->step(sample_step(0));
    recorder->flush(kPatience);
    ASSERT_EQ(::truncate(recorder->path().c_str(), 10), 0);
    recorder->step(sample_step(1));
    EXPECT_TRUE(recorder->flush(kPatience));
    ::unlink(recorder->path().c_str());
    recorder->step(sample_step(2));
    EXPECT_TRUE(recorder->flush(kPatience));
}

}  // namespace
}  // namespace mp::trace
