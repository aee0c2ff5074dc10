#include "kernels/base/suggest.hpp"

#include <array>

#include <gtest/gtest.h>

namespace mp {
namespace {

constexpr std::array<std::string_view, 4> kKeys{"select", "ignore", "exclude", "timeout"};

TEST(Suggest, DistanceCountsEditsAndIgnoresCase) {
    EXPECT_EQ(edit_distance("select", "selct"), 1u);
    EXPECT_EQ(edit_distance("MP401", "mp401"), 0u);
    EXPECT_EQ(edit_distance("", "abc"), 3u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(edit_distance("run", "RNU"), 1u) << "two neighbours exchanged are one slip";
}

TEST(Suggest, AMistypedWordFindsItsNeighbour) {
    EXPECT_EQ(nearest("selct", kKeys), "select");
    EXPECT_EQ(did_you_mean("timout", kKeys), "did you mean 'timeout'?");
}

TEST(Suggest, AShortenedWordFindsTheOnlyOneThatBeginsWithIt) {
    constexpr std::array<std::string_view, 3> kOptions{"--output", "--color", "--colors"};
    EXPECT_EQ(nearest("--out", kOptions), "--output");
    EXPECT_EQ(nearest("--col", kOptions), "") << "two begin with it";
    EXPECT_EQ(nearest("--ou", kOptions), "") << "two letters are too few";
    EXPECT_EQ(nearest("--", kOptions), "");
}

TEST(Suggest, AnUnrelatedWordFindsNothing) {
    EXPECT_EQ(nearest("regions", kKeys), "");
    EXPECT_EQ(nearest("", kKeys), "");
    EXPECT_EQ(nearest(std::string(100000, 'x'), kKeys), "");
    EXPECT_EQ(did_you_mean("zzz", kKeys), "");
}

}  // namespace
}  // namespace mp
