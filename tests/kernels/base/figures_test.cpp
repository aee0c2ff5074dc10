#include "kernels/base/figures.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(Figures, NumbersAreShortAndGrouped) {
    EXPECT_EQ(figure(71304), "71,304");
    EXPECT_EQ(figure(-1234567), "-1,234,567");
    EXPECT_EQ(figure(999), "999");
    EXPECT_EQ(figure(2.449), "2.45");
    EXPECT_EQ(figure(0.000312), "0.000312");
    EXPECT_EQ(figure(4e12), "4e+12");
    EXPECT_EQ(figure(std::nan("")), "nan");
    EXPECT_EQ(figure(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Figures, SharesAndFloors) {
    EXPECT_EQ(percent(0.463), "46 %");
    EXPECT_EQ(percent(0.0042), "0.42 %");
    EXPECT_EQ(percent(0), "0 %");
    EXPECT_EQ(phi(7.96), "8.0 φ");
    EXPECT_EQ(phi(1234.5), "1,235 φ");
    EXPECT_EQ(counted(1, "step"), "1 step");
    EXPECT_EQ(counted(1204, "step"), "1,204 steps");
}

}  // namespace
}  // namespace mp
