#include "kernels/numerics/tensor_stats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace mp {
namespace {

TensorStats of(const double* x, std::size_t n) {
    TensorStats s;
    long double sum = 0, squares = 0, m2 = 0;
    for (std::size_t i = 0; i < n; ++i) {
        ++s.count;
        s.zero += x[i] == 0;
        const double a = std::fabs(x[i]);
        s.amax = std::max(s.amax, a);
        if (a > 0) s.amin = s.amin == 0 ? a : std::min(s.amin, a);
        sum += x[i];
        squares += static_cast<long double>(x[i]) * x[i];
    }
    const long double mean = n ? sum / static_cast<long double>(n) : 0;
    for (std::size_t i = 0; i < n; ++i) m2 += (x[i] - mean) * (x[i] - mean);
    s.sum = static_cast<double>(sum);
    s.sum_squares = static_cast<double>(squares);
    s.mean = static_cast<double>(mean);
    s.m2 = static_cast<double>(m2);
    return s;
}

std::vector<double> normal(std::size_t n, double mean, unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> draw(mean, 1);
    std::vector<double> all(n);
    for (double& x : all) x = draw(random);
    return all;
}

void expect_same(const TensorStats& got, const TensorStats& expected) {
    EXPECT_EQ(got.count, expected.count);
    EXPECT_EQ(got.zero, expected.zero);
    EXPECT_EQ(got.amax, expected.amax);
    EXPECT_EQ(got.amin, expected.amin);
    EXPECT_NEAR(got.mean, expected.mean, 1e-13 * expected.amax);
    EXPECT_NEAR(got.m2, expected.m2, 1e-12 * expected.m2);
    EXPECT_NEAR(got.sum_squares, expected.sum_squares, 1e-12 * expected.sum_squares);
}

// The term between two groups is added. Subtracting it, or leaving it out, gives a variance of about 1 here.
TEST(TensorStats, MergeOfTwoGroupsApartHasTheSpreadBetweenThem) {
    std::vector<double> all = normal(10000, 0, 1);
    const std::vector<double> far = normal(10000, 5, 2);
    TensorStats merged = of(all.data(), all.size());
    merged.merge(of(far.data(), far.size()));
    all.insert(all.end(), far.begin(), far.end());
    expect_same(merged, of(all.data(), all.size()));
    EXPECT_NEAR(merged.m2 / 20000, 7.25, 0.1);
}

TEST(TensorStats, MergeOfAnySplitIsTheWhole) {
    std::mt19937_64 random(3);
    std::vector<double> all = normal(3000, 2, 4);
    all[17] = 0;
    const TensorStats whole = of(all.data(), all.size());
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<std::size_t> cuts = {0, all.size()};
        for (std::size_t k = 0; k < 1 + random() % 20; ++k) cuts.push_back(random() % (all.size() + 1));
        std::sort(cuts.begin(), cuts.end());
        std::vector<TensorStats> parts;
        for (std::size_t i = 1; i < cuts.size(); ++i)
            parts.push_back(of(all.data() + cuts[i - 1], cuts[i] - cuts[i - 1]));
        std::shuffle(parts.begin(), parts.end(), random);
        TensorStats merged;
        for (const TensorStats& part : parts) merged.merge(part);
        expect_same(merged, whole);
    }
}

TEST(TensorStats, EmptyIsNeutral) {
    const std::vector<double> all = normal(100, 1, 5);
    const TensorStats whole = of(all.data(), all.size());
    TensorStats left = whole, right;
    left.merge({});
    right.merge(whole);
    for (const TensorStats& s : {left, right}) {
        EXPECT_EQ(s.count, whole.count);
        EXPECT_EQ(s.mean, whole.mean);
        EXPECT_EQ(s.m2, whole.m2);
        EXPECT_EQ(s.amin, whole.amin);
    }
    TensorStats none;
    none.merge({});
    EXPECT_EQ(none.count, 0u);
    EXPECT_EQ(none.m2, 0);
}

TEST(TensorStats, NonFiniteValuesDoNotWeighInTheMoments) {
    TensorStats broken, ordinary;
    broken.count = 10;
    broken.nan = 6, broken.pos_inf = 3, broken.neg_inf = 1;
    ordinary.count = 2;
    ordinary.mean = 3, ordinary.m2 = 2, ordinary.sum = 6;
    broken.merge(ordinary);
    EXPECT_EQ(broken.nonfinite(), 10u);
    EXPECT_EQ(broken.finite(), 2u);
    EXPECT_EQ(broken.mean, 3);
    EXPECT_EQ(broken.m2, 2);
}

TEST(TensorStats, OverflownMomentsMergeToInfinityNotNan) {
    TensorStats a, b;
    a.count = b.count = 1;
    a.mean = 1e308, b.mean = -1e308;
    a.merge(b);
    EXPECT_EQ(a.m2, std::numeric_limits<double>::infinity());
}

TEST(ExponentHistogram, MergeAddsEachBin) {
    ExponentHistogram a, b;
    a.bins[0] = 1;         // below 2^-126
    a.bins[127 - 14] = 2;  // [2^-14, 2^-13)
    b.bins[127 - 14] = 1;
    b.bins[127 + 15] = 4;
    b.bins[254] = 8;  // from 2^127 on
    a.merge(b);
    EXPECT_EQ(a.bins[0], 1u);
    EXPECT_EQ(a.bins[127 - 14], 3u);
    EXPECT_EQ(a.bins[127 + 15], 4u);
    EXPECT_EQ(a.bins[254], 8u);
}

}  // namespace
}  // namespace mp
