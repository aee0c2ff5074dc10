#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/kernels/cpu/expectations.hpp"

// Where sums start in fp32 lanes, and where they must not.

namespace mp::cpu {
namespace {

std::vector<double> scaled(const std::vector<double>& values, int exponent) {
    std::vector<double> all = values;
    for (double& x : all) x = std::ldexp(x, exponent);
    return all;
}

void check_statistics_of(DType dtype, const std::vector<double>& values) {
    const auto bytes = oracle::stored(dtype, values);
    with_each_set([&] { check_statistics(dtype, bytes.data(), values.size()); });
}

void check_pair(DType dtype, const std::vector<double>& x, const std::vector<double>& y) {
    const auto real = oracle::stored(dtype, x), twin = oracle::stored(DType::fp32, y);
    with_each_set([&] { check_divergence(dtype, real, DType::fp32, twin, x.size()); });
}

// Squares that fp32 would overflow or flush, one block in the middle of ordinary ones.
TEST(QuickPaths, AnyScaleOfABlock) {
    const std::vector<double> ordinary = oracle::normal(3 * kBlock, 71);
    for (const int exponent : {-140, -120, -80, -62, -53, -49, 0, 57, 61, 70, 100, 124}) {
        SCOPED_TRACE(exponent);
        std::vector<double> values = ordinary, twin = ordinary;
        for (std::size_t i = kBlock; i < 2 * kBlock; ++i) {
            values[i] = std::ldexp(ordinary[i], exponent);
            twin[i] = values[i] * (1 + 0x1p-9 * ordinary[i - kBlock]);
        }
        for (const DType dtype : {DType::bf16, DType::fp32}) {
            check_statistics_of(dtype, values);
            check_pair(dtype, values, twin);
            check_pair(dtype, twin, values);
        }
    }
}

// All of one sign: the largest error that fp32 lanes can collect.
TEST(QuickPaths, SumsOfOneSign) {
    std::mt19937_64 random(72);
    std::uniform_real_distribution<double> draw(1, 2);
    std::vector<double> values(3 * kBlock + 19), twin = values;
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = draw(random), twin[i] = values[i] + 0.3 * draw(random);
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16, DType::e4m3, DType::e5m2}) {
        check_statistics_of(dtype, values);
        check_pair(dtype, values, twin);
    }
}

// x - y is not a float: the extremes and the count of errors above one ulp are those of the exact difference.
TEST(QuickPaths, DifferencesThatFp32Rounds) {
    std::mt19937_64 random(73);
    std::uniform_int_distribution<int> exponent(-34, 6), ulps(-3, 3);
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16, DType::e4m3, DType::e5m2}) {
        SCOPED_TRACE(name_of(dtype));
        std::vector<double> x = oracle::normal(2 * kBlock + 7, 74), y = oracle::normal(x.size(), 75);
        for (double& v : y) v = std::ldexp(v, exponent(random));
        check_pair(dtype, x, y);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double unit = oracle::ulp(*format_of(dtype), y[i]);
            x[i] = (std::nearbyint(y[i] / unit) + ulps(random)) * unit;
        }
        check_pair(dtype, x, y);
        for (double& v : y) v = std::ldexp(v, -20);
        check_pair(dtype, x, y);
    }
}

// One ulp and a little more, below the smallest normal value of the format: fp32 rounds it to one ulp.
TEST(QuickPaths, ALittleMoreThanOneUlpIsCounted) {
    check_pair(DType::fp16, {0x1p-24, 1, 0, 0x1p-24}, {-0x1p-60, 1, 0, 0x1p-60});
    check_pair(DType::e4m3, {0x1p-9, 1, 0, 0x1p-9}, {-0x1p-60, 1, 0, 0x1p-60});
    check_pair(DType::e5m2, {0x1p-16, 1, 0, 0x1p-16}, {-0x1p-60, 1, 0, 0x1p-60});
}

// Where x is lost in x - y its squares cannot come from y's.
TEST(QuickPaths, OneSideMuchSmaller) {
    const std::vector<double> y = oracle::normal(kBlock + 5, 76);
    for (const int exponent : {-40, -20, -3, 3, 20}) check_pair(DType::bf16, scaled(y, exponent), y);
    check_pair(DType::bf16, std::vector<double>(y.size(), 0.0), y);
    check_pair(DType::bf16, y, std::vector<double>(y.size(), 0.0));
}

TEST(QuickPaths, ZerosAmongValues) {
    std::vector<double> x = oracle::normal(2 * kBlock + 11, 77), y = x;
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = i % 2 ? 0.0 : -0.0;
    for (std::size_t i = 0; i < x.size(); i += 6) y[i] = 0;
    for (const DType dtype : kMeasured) {
        check_statistics_of(dtype, x);
        check_pair(dtype, x, y);
    }
}

// Exponents that fill one window of the histogram, straddle two, or leave few values behind.
TEST(QuickPaths, HistogramsOfAnySpread) {
    std::mt19937_64 random(78);
    for (const int spread : {1, 15, 16, 17, 31, 32, 33, 100, 250}) {
        std::uniform_int_distribution<int> exponent(0, spread - 1);
        for (const double share : {1.0, 0.01, 0.0005}) {
            std::vector<double> values(2 * kBlock + 33, 1.5 * 0x1p120);
            std::bernoulli_distribution drawn(share);
            for (double& v : values)
                if (drawn(random)) v = std::ldexp(1.25, 120 - exponent(random));
            values[5] = std::ldexp(1.0, 121 - spread);
            for (const DType dtype : {DType::fp32, DType::bf16, DType::fp64})
                check_statistics_of(dtype, values);
        }
    }
}

TEST(QuickPaths, HistogramWindowThatReachesZero) {
    std::vector<double> values(kBlock, 0.0);
    for (std::size_t i = 0; i < 40; ++i) values[i * 90] = std::ldexp(1.5, -149 + static_cast<int>(i));
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp64}) check_statistics_of(dtype, values);
}

// The window of a block is guessed from the block before: guesses that hold, that are too low, too high, that leave
// values below the window, and blocks of zeros, NaN and subnormals between.
TEST(QuickPaths, HistogramsOfBlocksThatDiffer) {
    std::mt19937_64 random(79);
    const std::vector<double> ordinary = oracle::normal(10 * kBlock + 64, 80);
    for (const std::vector<int>& scales :
         std::vector<std::vector<int>>{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                       {0, 1, 2, 3, 2, 1, 0, -1, -2, -3},
                                       {0, 20, 0, -20, 40, 40, -60, -60, 0, 0},
                                       {-110, -111, -112, -116, -120, -124, -126, -130, -126, -110},
                                       {110, 122, 123, 121, 120, 90, 89, 0, 1, 2}}) {
        std::vector<double> values = ordinary;
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = std::ldexp(values[i], scales[std::min<std::size_t>(i / kBlock, 9)]);
            if (i / kBlock == 4 || i % 997 == 0) values[i] = 0;
        }
        for (std::size_t i = 0; i < 200; ++i) values[random() % values.size()] *= 0x1p-18;
        values[6 * kBlock + 100] = std::numeric_limits<double>::quiet_NaN();
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) check_statistics_of(dtype, values);
    }
}

// Every bin of a guessed window, and the bins beside it, from one block to the next.
TEST(QuickPaths, EveryBinOfAGuessedWindow) {
    for (int top = -126; top <= 127; top += 11) {
        std::vector<double> values(3 * kBlock, std::ldexp(1.5, top));
        for (std::size_t i = kBlock; i < values.size(); ++i) {
            const int below = static_cast<int>(i % 35) - (i > 2 * kBlock ? 1 : 0);
            values[i] = below < 0 || top - below < -149 ? 0 : std::ldexp(i % 2 ? 1.5 : -1.0, top - below);
        }
        for (const DType dtype : {DType::fp32, DType::bf16}) check_statistics_of(dtype, values);
    }
}

}  // namespace
}  // namespace mp::cpu
