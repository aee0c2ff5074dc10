#include "kernels/numerics/rank_step.hpp"

#include <type_traits>

#include <gtest/gtest.h>

namespace mp {
namespace {

static_assert(!std::is_convertible_v<Rank, Step> && !std::is_convertible_v<Step, Rank>);

TEST(RankStep, TheDefaultIsUnknown) {
    EXPECT_FALSE(Rank{}.known() || Step{}.known());
    EXPECT_TRUE(Rank{0}.known() && Step{0}.known());
}

TEST(RankStep, StepsFollowEachOtherAndNeverWrap) {
    EXPECT_EQ(Step{}.next(), Step{0});
    EXPECT_LT(Step{41}, Step{41}.next());
    const Step last{std::numeric_limits<std::int64_t>::max()};
    EXPECT_EQ(last.next(), last);
}

}  // namespace
}  // namespace mp
