#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

template <class T>
std::vector<unsigned char> bytes_of(const T& value) {
    std::vector<unsigned char> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

struct Everything {
    TensorStats stats;
    ExponentHistogram histogram;
    Divergence diverged;
};

Everything measure(DType dtype, const void* real, DType twin_dtype, const void* twin, std::int64_t n) {
    Everything all;
    EXPECT_TRUE(statistics(contiguous(real, dtype, n), all.stats, &all.histogram));
    EXPECT_TRUE(divergence(contiguous(real, dtype, n), contiguous(twin, twin_dtype, n), all.diverged));
    return all;
}

TEST(InstructionSets, AllReturnTheSameBits) {
    const std::size_t n = 3 * kBlock + 77;
    std::vector<double> y = oracle::normal(n, 31);
    for (const bool special : {false, true}) {
        if (special) y[100] = std::numeric_limits<double>::infinity(), y[5000] = 0, y[9000] = 1e-300;
        for (const DType dtype : kMeasured)
            for (const DType twin_dtype : {DType::fp32, DType::fp64}) {
                const auto real = oracle::stored(dtype, y), twin = oracle::stored(twin_dtype, y);
                std::vector<Everything> results;
                with_each_set([&] {
                    const auto elements = static_cast<std::int64_t>(n);
                    results.push_back(measure(dtype, real.data(), twin_dtype, twin.data(), elements));
                });
                for (const Everything& result : results) {
                    EXPECT_EQ(bytes_of(result.stats), bytes_of(results[0].stats)) << name_of(dtype);
                    EXPECT_EQ(bytes_of(result.diverged), bytes_of(results[0].diverged)) << name_of(dtype);
                    EXPECT_EQ(result.histogram.bins, results[0].histogram.bins);
                }
            }
    }
}

TEST(InstructionSets, TheBestIsInUseAndHasAName) {
    const Kernels* sets[kMaxInstructionSets] = {};
    ASSERT_GE(available(sets), 1);
    EXPECT_STREQ(instruction_set(), sets[0]->name);
    EXPECT_GT(std::strlen(instruction_set()), 2u);
}

}  // namespace
}  // namespace mp::cpu
