#include "runtime/trace/job_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/base/temporary_folder.hpp"

namespace mp::trace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Identity process(std::int64_t pid) {
    Identity id;
    id.host = "host";
    id.pid = pid;
    return id;
}

Identity rank(std::int32_t number, std::int64_t pid, std::int32_t restart = 0) {
    Identity id = process(pid);
    id.launcher = "torchrun";
    id.job = "job";
    id.rank = Rank{number};
    id.world_size = 2;
    id.restart = restart;
    return id;
}

class JobDirectory : public TemporaryFolder {
protected:
    void SetUp() override {
        TemporaryFolder::SetUp();
        top = path();
    }
    std::string top;
};

TEST_F(JobDirectory, AProcessWithoutARankIsAJob) {
    EXPECT_EQ(job_directory(top, process(1)), top);
    EXPECT_EQ(job_directory(top, process(2)), top + "/job.2");
    EXPECT_EQ(job_directory(top, process(3)), top + "/job.3");
    EXPECT_EQ(job_directory(top, process(2)), top + "/job.2");
}

TEST_F(JobDirectory, RanksOfALaunchShareOneAndTheNextLaunchHasItsOwn) {
    EXPECT_EQ(job_directory(top, rank(0, 1)), top);
    EXPECT_EQ(job_directory(top, rank(1, 2)), top);
    EXPECT_EQ(job_directory(top, rank(0, 3)), top + "/job.2");
    EXPECT_EQ(job_directory(top, rank(0, 4, 1)), top) << "a restart continues its launch";
}

TEST_F(JobDirectory, FindsTheJobsOfProcesses) {
    job_directory(top, process(1));
    const std::string second = job_directory(top, process(12));
    write("rx.c0.host.p1.mpt", "");
    write("job.2/rx.c0.host.p12.mpt", "");
    EXPECT_THAT(directories_of(top, {12, 7}), ElementsAre(second));
    EXPECT_THAT(directories_of(top, {2}), IsEmpty());
}

TEST_F(JobDirectory, OneCallerPrintsTheSummary) {
    EXPECT_TRUE(claim_summary(top));
    EXPECT_FALSE(claim_summary(top));
    EXPECT_TRUE(claim_summary(top + "/missing")) << "nobody can claim it: printed twice rather than never";
}

}  // namespace
}  // namespace mp::trace
