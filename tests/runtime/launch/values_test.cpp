#include "runtime/launch/values.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace mp::launch {
namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

void expect_steps(const char* text, std::int64_t first, std::int64_t last, std::int64_t every) {
    const Result<trace::StepRange> range = parse_steps(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(range->first, first) << text;
    EXPECT_EQ(range->last, last) << text;
    EXPECT_EQ(range->every, every) << text;
}

TEST(Steps, AreReadWithPartsLeftOut) {
    expect_steps("100:200:10", 100, 200, 10);
    expect_steps("0:50", 0, 50, 1);
    expect_steps(":50", 0, 50, 1);
    expect_steps("7:", 7, kEndless, 1);
    expect_steps("::5", 0, kEndless, 5);
    expect_steps("17", 17, 18, 1);
    expect_steps("9223372036854775806", kEndless - 1, kEndless, 1);
}

TEST(Steps, ThatHoldNothingOrAreNoNumbersAreRefused) {
    for (const char* text :
         {"", "a", "-1", "1:0", "5:5", "0:10:0", "1:2:3:4", " 1", "1 ", "+1", "1.5", "0x10",
          "9223372036854775807", "9223372036854775808:", "1:2:99999999999999999999"}) {
        EXPECT_FALSE(parse_steps(text)) << text;
    }
    EXPECT_FALSE(parse_steps(std::string(1 << 16, ':')));
}

TEST(Steps, AsTextReadBackAsTheSameRange) {
    for (const char* text : {"100:200:10", "0:50", "7:", "0::5", "17"}) {
        const Result<trace::StepRange> range = parse_steps(text);
        ASSERT_TRUE(range);
        EXPECT_EQ(text_of(*range), text);
    }
    EXPECT_EQ(text_of(trace::StepRange{}), "") << "every step is not worth saying";
}

TEST(Ranks, AreSingleOnesAndRanges) {
    const auto ranks = parse_ranks("0,8-15");
    ASSERT_TRUE(ranks);
    ASSERT_EQ(ranks->size(), 2u);
    EXPECT_EQ(ranks->at(0).first, 0);
    EXPECT_EQ(ranks->at(0).last, 0);
    EXPECT_EQ(ranks->at(1).first, 8);
    EXPECT_EQ(ranks->at(1).last, 15);
}

TEST(Ranks, ThatMakeNoSenseAreRefused) {
    for (const char* text : {"", ",", "0,", "3-1", "-1", "1-", "a", "0;1", "4294967296", "1--2", "0 ,1"}) {
        EXPECT_FALSE(parse_ranks(text)) << text;
    }
}

TEST(Sizes, TakeUnitsOf1024) {
    const auto size = [](const char* text) { return parse_size(text) ? *parse_size(text) : 0; };
    EXPECT_EQ(size("65536"), 65536u);
    EXPECT_EQ(size("64K"), 65536u);
    EXPECT_EQ(size("512M"), 512u << 20);
    EXPECT_EQ(size("2g"), std::uint64_t{2} << 30);
    EXPECT_EQ(size("1T"), std::uint64_t{1} << 40);
}

TEST(Sizes, ThatAreNoSizesAreRefused) {
    for (const char* text : {"", "0", "K", "63K", "-1G", "1.5G", "1GB", "1 G", "99999999999999999999",
                             "18446744073709551615K", "17000000T", "1e9", "0x10000"}) {
        EXPECT_FALSE(parse_size(text)) << text;
    }
}

TEST(Modes, AreTheFourOfTheDocumentation) {
    for (const char* text : {"watch", "local", "step", "trajectory"}) {
        const auto mode = parse_mode(text);
        ASSERT_TRUE(mode) << text;
        EXPECT_EQ(name_of(*mode), text);
    }
    EXPECT_FALSE(parse_mode("off"));
    EXPECT_FALSE(parse_mode("Watch"));
    ASSERT_FALSE(parse_mode("trajektory"));
    EXPECT_EQ(parse_mode("trajektory").error().hint, "did you mean 'trajectory'?");
}

}  // namespace
}  // namespace mp::launch
