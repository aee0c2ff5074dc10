#include "kernels/base/result.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace mp {
namespace {

Result<int> half_of(int x) {
    if (x % 2) return Error{"odd", "give an even number"};
    return x / 2;
}

TEST(Result, HoldsAValueOrAnError) {
    const Result<int> good = half_of(8), bad = half_of(7);
    ASSERT_TRUE(good.has_value());
    EXPECT_EQ(*good, 4);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().message, "odd");
    EXPECT_EQ(bad.error().hint, "give an even number");
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
    Result<std::unique_ptr<int>> made(std::make_unique<int>(3));
    const std::unique_ptr<int> taken = *std::move(made);
    EXPECT_EQ(*taken, 3);
}

TEST(Result, AnErrorIsNoValueEvenWhereTheTypesAreAlike) {
    const Result<std::string> text(std::string("fine"));
    EXPECT_EQ(text->size(), 4u);
    const Result<std::string> error(Error{"not fine", ""});
    EXPECT_FALSE(error);
}

TEST(Result, SuccessWithoutAValueIsDone) {
    EXPECT_TRUE(Status(Done{}).has_value());
    EXPECT_FALSE(Status(Error{"x", ""}).has_value());
}

TEST(ResultDeathTest, ReadingTheOtherAlternativeTerminates) {
    const Result<int> bad = half_of(1), good = half_of(2);
    EXPECT_DEATH((void)bad.value(), "");
    EXPECT_DEATH((void)good.error(), "");
}

}  // namespace
}  // namespace mp
