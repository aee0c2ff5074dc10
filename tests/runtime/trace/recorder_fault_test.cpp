// The recorder under failures of the system. Linked with --wrap=write, so that a test decides what write(2) of the
// recorder returns, and with an operator new that can fail.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/trace/reader.hpp"
#include "runtime/trace/recorder.hpp"
#include "tests/runtime/trace/samples.hpp"

namespace {

enum class Fault { none, error, half, closed_pipe, interrupted };

struct Plan {
    std::atomic<Fault> fault{Fault::none};
    std::atomic<int> at{0};  // which write, from 0: the file header is the first
    std::atomic<int> error{0};
    std::atomic<int> calls{0};
};
Plan plan;

// ThreadSanitizer brings its own operator new, which cannot be replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MP_KEEP_NEW
#endif
#endif
#ifndef MP_KEEP_NEW

std::atomic<bool> refuse_everywhere{false};
thread_local long allocations_left = -1;  // negative: no limit

bool refused() {
    if (refuse_everywhere) return true;
    if (allocations_left < 0) return false;
    if (allocations_left == 0) return true;
    --allocations_left;
    return false;
}

#endif
}  // namespace

extern "C" ssize_t __real_write(int, const void*, size_t);
extern "C" ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
    if (fd < 512) return __real_write(fd, bytes, size);
    const int call = plan.calls++;
    const Fault fault = plan.fault;
    if (fault == Fault::interrupted && call % 3 != 2) {
        errno = EINTR;
        return -1;
    }
    if (fault == Fault::none || fault == Fault::interrupted || call < plan.at)
        return __real_write(fd, bytes, size);
    if (fault == Fault::half && call == plan.at) return __real_write(fd, bytes, size / 2);
    if (fault == Fault::closed_pipe) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
        ::close(ends[0]);
        const ssize_t put = __real_write(ends[1], bytes, size);
        const int error = errno;
        ::close(ends[1]);
        errno = error;
        return put;
    }
    errno = plan.error;
    return -1;
}

#ifndef MP_KEEP_NEW
void* operator new(std::size_t size) {
    if (refused()) throw std::bad_alloc();
    void* const it = std::malloc(size ? size : 1);
    if (!it) throw std::bad_alloc();
    return it;
}
void operator delete(void* it) noexcept { std::free(it); }
void operator delete(void* it, std::size_t) noexcept { std::free(it); }
#endif

namespace mp::trace {
namespace {

using test::sample_note;
using test::sample_process;
using test::sample_step_without_ops;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kPatience = 60'000;

class RecorderFault : public testing::Test {
protected:
    ~RecorderFault() override { arm(Fault::none, 0); }

    static void arm(Fault fault, int at, int error = 0) {
        plan.fault = fault;
        plan.at = at;
        plan.error = error;
        plan.calls = 0;
    }
    auto open() { return Recorder::open(directory_.path(), "r0.mpt", {}); }
    Recording read() const {
        auto recording = read_recording(directory_.file("r0.mpt"));
        EXPECT_TRUE(recording);
        return *std::move(recording);
    }

    test::TemporaryDirectory directory_;
};

TEST_F(RecorderFault, AWriteThatFailsStopsTheRecordingAndEveryLaterRecordIsCounted) {
    for (const int error : {EFBIG, ENOSPC, EDQUOT, EIO, EROFS, EAGAIN, EPIPE, ESTALE}) {
        std::filesystem::remove(directory_.file("r0.mpt"));
        // 1 file header, 2 names, then one frame a step: the write number 12 is step 10.
        arm(Fault::error, 12, error);
        std::uint64_t dropped = 0;
        {
            auto recorder = open();
            ASSERT_TRUE(recorder);
            for (int i = 0; i < 100; ++i) (*recorder)->step(sample_step_without_ops(i));
            EXPECT_FALSE((*recorder)->flush(kPatience));
            for (int i = 0; i < 10; ++i) (*recorder)->step(sample_step_without_ops(100));
            (*recorder)->note(sample_note());
            dropped = (*recorder)->dropped();
        }
        const int calls = plan.calls;
        EXPECT_EQ(calls, 13) << "nothing is written after the failure";
        const Recording r = read();
        EXPECT_EQ(r.steps.size(), 10u);
        EXPECT_EQ(dropped, 90u + 10u + 1u);
        EXPECT_THAT(r.problems, IsEmpty());
    }
}

TEST_F(RecorderFault, AShortWriteStopsItAndTheTornEndIsTheOnlyLoss) {
    arm(Fault::half, 12);
    {
        auto recorder = open();
        ASSERT_TRUE(recorder);
        for (int i = 0; i < 100; ++i) (*recorder)->step(sample_step_without_ops(i));
        EXPECT_FALSE((*recorder)->flush(kPatience));
        EXPECT_EQ((*recorder)->dropped(), 90u);
    }
    const Recording r = read();
    EXPECT_EQ(r.steps.size(), 10u);
    ASSERT_EQ(r.problems.size(), 1u);
    EXPECT_THAT(r.problems[0].why, HasSubstr("cut off"));
}

TEST_F(RecorderFault, AnInterruptedWriteIsRepeated) {
    arm(Fault::interrupted, 0);
    {
        auto recorder = open();
        ASSERT_TRUE(recorder);
        for (int i = 0; i < 100; ++i) (*recorder)->step(sample_step_without_ops(i));
        EXPECT_TRUE((*recorder)->flush(kPatience));
        EXPECT_EQ((*recorder)->dropped(), 0u);
    }
    EXPECT_EQ(read().steps.size(), 100u);
}

TEST_F(RecorderFault, AClosedPipeIsAnErrorAndNoSignal) {
    arm(Fault::closed_pipe, 5);  // SIGPIPE would end this test
    auto recorder = open();
    ASSERT_TRUE(recorder);
    for (int i = 0; i < 100; ++i) (*recorder)->step(sample_step_without_ops(i));
    EXPECT_FALSE((*recorder)->flush(kPatience));
    EXPECT_EQ((*recorder)->dropped(), 97u);
}

TEST_F(RecorderFault, AFullDiskAtTheStartLeavesNoFile) {
    for (const Fault fault : {Fault::error, Fault::half, Fault::closed_pipe}) {
        arm(fault, 0, ENOSPC);
        auto recorder = open();
        ASSERT_FALSE(recorder);
        EXPECT_THAT(recorder.error().message, HasSubstr("r0.mpt: "));
        EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
    }
}

#ifndef MP_KEEP_NEW

TEST_F(RecorderFault, WithoutMemoryARecordIsDroppedAndCounted) {
    long needed = 0;
    {
        auto recorder = open();
        ASSERT_TRUE(recorder);
        const StepRecord step = sample_step_without_ops(0, 20);
        const NoteRecord note = sample_note(std::string(100, 'n'));
        const ProcessRecord process = sample_process();
        for (bool enough = false; !enough; ++needed) {
            const std::uint64_t before = (*recorder)->dropped();
            allocations_left = needed;
            (*recorder)->step(step);
            allocations_left = -1;
            enough = (*recorder)->dropped() == before;
            ASSERT_LE((*recorder)->dropped(), before + 1);
        }
        allocations_left = 0;
        (*recorder)->note(note);
        (*recorder)->process(process);
        allocations_left = -1;
        EXPECT_EQ((*recorder)->dropped(), static_cast<std::uint64_t>(needed - 1) + 1 + (needed > 0));
        EXPECT_TRUE((*recorder)->flush(kPatience));
    }
    EXPECT_GT(needed, 20) << "at least one allocation for each name";
    EXPECT_EQ(read().steps.size(), 1u);
    EXPECT_THAT(read().problems, IsEmpty());
}

TEST_F(RecorderFault, WithoutMemoryOnTheWriterThreadTheRecordingGoesOnAfterwards) {
    auto recorder = open();
    ASSERT_TRUE(recorder);
    const StepRecord first = sample_step_without_ops(0, 200);
    (*recorder)->step(first);
    refuse_everywhere = true;
    (*recorder)->flush(kPatience);
    refuse_everywhere = false;
    (*recorder)->step(sample_step_without_ops(1, 200));
    EXPECT_TRUE((*recorder)->flush(kPatience));
    const Recording r = read();
    EXPECT_EQ(r.steps.size() + (*recorder)->dropped(), 2u);
    EXPECT_EQ(r.steps.back().tensors.back().name, first.tensors.back().name);
    EXPECT_THAT(r.problems, IsEmpty());
}

TEST_F(RecorderFault, WithoutMemoryOpeningIsAnError) {
    for (long n = 0;; ++n) {
        allocations_left = n;
        auto recorder = open();
        const bool opened = recorder.has_value();
        allocations_left = -1;
        if (opened) break;
        ASSERT_LT(n, 100);
        EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << n;
    }
}

#endif

}  // namespace
}  // namespace mp::trace
