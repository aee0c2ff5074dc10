#include "kernels/base/percent_encoding.hpp"

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(PercentEncoding, KeepsWhatAUriMayHoldAndEncodesTheRest) {
    EXPECT_EQ(percent_encoded("src/a-b_c.~9/norm.cu"), "src/a-b_c.~9/norm.cu");
    EXPECT_EQ(percent_encoded("a b%#?:\\"), "a%20b%25%23%3F%3A%5C");
    EXPECT_EQ(percent_encoded("\xc3\xa9\xff"), "%C3%A9%FF");
    EXPECT_EQ(percent_encoded(""), "");
}

}  // namespace
}  // namespace mp
