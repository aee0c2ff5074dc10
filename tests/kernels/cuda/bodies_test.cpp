#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/kernels/cuda/checks.hpp"
#include "tests/kernels/cuda/fake_driver.hpp"

namespace mp::cuda {
namespace {

class Host : public Machine {
public:
    char* memory(std::size_t bytes) override { return static_cast<char*>(pinned(bytes)); }
    void copy(char* to, const void* from, std::size_t bytes) override {
        if (bytes > 0) std::memcpy(to, from, bytes);
    }
    void* pinned(std::size_t bytes) override {
        all_.push_back(std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256));
        return all_.back();
    }
    void wait() override {}
    void release() override {
        for (void* p : all_) std::free(p);
        all_.clear();
    }
    ~Host() override { release(); }

private:
    std::vector<void*> all_;
};

struct CudaBodies : testing::Test {
    Host host;
    Measure measure;
    Scratch scratch;
    Checks checks{host, measure, scratch};

    void SetUp() override {
        fake() = {};
        ASSERT_TRUE(measure.load());
        ASSERT_TRUE(scratch.make(nullptr));
    }
    void TearDown() override {
        scratch.free();
        EXPECT_EQ(checks.failures(), 0);
    }
};

TEST_F(CudaBodies, ReturnWhatTheCpuReturnsForAllSizesAndData) { checks.sizes_and_data(70000, true); }

TEST_F(CudaBodies, AgreeOnEveryShortPattern) { checks.every_short_pattern(); }

TEST_F(CudaBodies, ReadEveryLayout) { checks.layouts(); }

TEST_F(CudaBodies, FindTheFirstOffender) { checks.offenders(300001); }

TEST_F(CudaBodies, MeasureListsOfManyTensors) {
    checks.lists(150);
    checks.lists(700);
}

TEST_F(CudaBodies, RefuseWhatIsNotMeasured) { checks.refusals(); }

TEST_F(CudaBodies, SplitAListThatAnOldDriverCannotTake) {
    fake().version = 12000;
    Measure old;
    ASSERT_TRUE(old.load());
    Checks with_old{host, old, scratch};
    with_old.lists(700);
    EXPECT_EQ(with_old.failures(), 0);
}

TEST_F(CudaBodies, OneLaunchMeasures150TensorsOfAFormat) {
    std::vector<float> values(1000, 1.0f);
    std::vector<cpu::TensorView> all(150, cpu::contiguous(values.data(), DType::fp32, 1000));
    std::vector<TensorStats> results(150);
    fake().launches = 0;
    fake().version = 12000;
    Measure old;
    ASSERT_TRUE(old.load());
    ASSERT_TRUE(old.statistics(nullptr, scratch, all.data(), 150, results.data()));
    EXPECT_EQ(fake().launches, 1);
    EXPECT_EQ(results[149].sum, 1000);
}

// A block that waits for a place begins when the others have ended.
TEST_F(CudaBodies, BlocksOfAListRunAtOnce) {
    fake().processors = 10;  // 20 blocks at once
    Measure other;
    ASSERT_TRUE(other.load());
    constexpr std::int64_t kTile = 4096;  // of fp32
    std::vector<float> values(16 * kTile, 1.0f);
    for (const int tensors : {1, 3, 7, 15, 20}) {
        std::vector<cpu::TensorView> all(static_cast<std::size_t>(tensors),
                                         cpu::contiguous(values.data(), DType::fp32, 16 * kTile));
        std::vector<TensorStats> results(all.size());
        ASSERT_TRUE(other.statistics(nullptr, scratch, all.data(), tensors, results.data()));
        EXPECT_LE(fake().blocks, 20u) << tensors;
        EXPECT_GE(fake().blocks, 10u) << tensors;
        EXPECT_EQ(results.back().sum, 16 * kTile);
    }
}

TEST_F(CudaBodies, AddNothingToAStreamThatCaptures) {
    fake().capturing = true;
    fake().launches = 0;
    float x = 1;
    const cpu::TensorView one = cpu::contiguous(&x, DType::fp32, 1);
    TensorStats stats;
    EXPECT_EQ(measure.statistics(nullptr, scratch, &one, 1, &stats).status, Status::capturing);
    EXPECT_EQ(fake().launches, 0);
}

TEST_F(CudaBodies, FaultsOfTheDriverAreOutcomes) {
    float x = 1;
    const cpu::TensorView one = cpu::contiguous(&x, DType::fp32, 1);
    TensorStats stats;
    fake().launch_fails = true;
    const Outcome failed = measure.statistics(nullptr, scratch, &one, 1, &stats);
    EXPECT_EQ(failed.status, Status::refused);
    EXPECT_EQ(failed.code, 719);
    fake().memory_refused = true;
    Scratch none;
    EXPECT_EQ(none.make(nullptr).status, Status::refused);
    fake().no_context = true;
    Measure another;
    EXPECT_EQ(another.load().status, Status::no_context);
    EXPECT_FALSE(another.ready());
}

}  // namespace
}  // namespace mp::cuda
