#include "analyzer/driver/pool.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::lint {
namespace {

using State = JobOutcome::State;
using testing::HasSubstr;

std::map<std::size_t, JobOutcome> run(std::size_t count, const PoolOptions& options,
                                      const std::function<std::string(std::size_t)>& work) {
    std::map<std::size_t, JobOutcome> out;
    run_jobs(count, options, work, [&](std::size_t i, JobOutcome o) {
        EXPECT_TRUE(out.emplace(i, std::move(o)).second) << "job " << i << " ended twice";
    });
    return out;
}

TEST(Pool, EveryJobIsDoneOnceInAnotherProcess) {
    const std::string here = std::to_string(::getpid());
    const auto out = run(50, {.jobs = 3, .jobs_per_worker = 4},
                         [](std::size_t i) { return std::to_string(i) + " " + std::to_string(::getpid()); });
    ASSERT_EQ(out.size(), 50u);
    std::set<std::string> pids;
    for (const auto& [i, o] : out) {
        EXPECT_EQ(o.output.substr(0, o.output.find(' ')), std::to_string(i));
        pids.insert(o.output.substr(o.output.find(' ') + 1));
    }
    EXPECT_FALSE(pids.contains(here));
    EXPECT_GE(pids.size(), 12u) << "a worker serves 4 jobs and is replaced";
}

TEST(Pool, SomethingElseIsDoneMeanwhile) {
    std::string order;
    run_jobs(
        1, {},
        [](std::size_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return std::string("done");
        },
        [&](std::size_t, JobOutcome o) { order += o.output; },
        [&] {
            order += "more ";
            return order.size() < 15;
        });
    EXPECT_EQ(order, "more more more done");
}

TEST(Pool, LargeAndEmptyOutputsArriveWhole) {
    const auto out =
        run(4, {.jobs = 2}, [](std::size_t i) { return std::string(i * 3'000'000, char('a' + i)); });
    for (const auto& [i, o] : out) EXPECT_EQ(o.output, std::string(i * 3'000'000, char('a' + i)));
}

TEST(Pool, ACrashCostsItsJobOnly) {
    const auto out = run(20, {.jobs = 2}, [](std::size_t i) -> std::string {
        if (i == 3) std::abort();
        if (i == 7) ::_exit(5);
        if (i == 9) throw std::runtime_error("from the front end");
        return "ok";
    });
    ASSERT_EQ(out.size(), 20u);
    for (const auto& [i, o] : out) EXPECT_EQ(o.state == State::done, i != 3 && i != 7 && i != 9) << i;
    EXPECT_THAT(out.at(3).message, HasSubstr("killed by signal 6"));
    EXPECT_EQ(out.at(7).message, "ended with status 5");
}

TEST(Pool, AHangIsKilledAtTheTimeoutAndTheOthersFinish) {
    const auto start = std::chrono::steady_clock::now();
    const auto out = run(6, {.jobs = 2, .timeout = 0.3}, [](std::size_t i) -> std::string {
        if (i == 1) {
            std::signal(SIGTERM, SIG_IGN);
            while (true) std::this_thread::sleep_for(std::chrono::hours(1));
        }
        return "ok";
    });
    EXPECT_EQ(out.at(1).state, State::timeout);
    EXPECT_EQ(out.at(1).message, "not done within 0.3 s");
    for (const auto& [i, o] : out) EXPECT_EQ(o.state == State::done, i != 1);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Pool, AnEarlierJobsDamageIsNotCountedAgainstALaterOne) {
    static int damaged = 0;  // of the worker: the parent's stays 0
    const auto out = run(2, {.jobs = 1}, [](std::size_t i) -> std::string {
        if (i == 0) damaged = 1;
        if (i == 1 && damaged) std::abort();
        return "ok";
    });
    EXPECT_EQ(out.at(1).state, State::done);
}

TEST(Pool, WorkersPrintNothing) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    run(2, {.jobs = 1}, [](std::size_t) {
        if (::write(1, "noise", 5) + ::write(2, "noise", 5) != 10) ::_exit(1);
        return std::string();
    });
    EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

TEST(Pool, NoJobsIsNoWork) {
    EXPECT_TRUE(run(0, {}, [](std::size_t) { return std::string(); }).empty());
}

}  // namespace
}  // namespace mp::lint
