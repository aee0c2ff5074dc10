#include "analyzer/region/fact_key.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace mp::lint {
namespace {

TEST(FactMap, KeepsEachAnswerInItsPlaceWhileItGrows) {
    const std::vector<int> facts(3000);
    FactMap<int> map;
    std::vector<int*> kept;
    for (const int& fact : facts)
        for (const int index : {-1, 0}) {
            const auto [value, is_new] = map.try_emplace({&fact, index}, -1);
            EXPECT_TRUE(is_new);
            EXPECT_EQ(value, -1);
            value = static_cast<int>(kept.size());
            kept.push_back(&value);
        }
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const auto [value, is_new] = map.try_emplace({&facts[i / 2], i % 2 == 0 ? -1 : 0});
        EXPECT_FALSE(is_new);
        EXPECT_EQ(value, static_cast<int>(i));
        EXPECT_EQ(&value, kept[i]);
    }
}

TEST(FactMap, ForgetsEverything) {
    const int fact = 0;
    FactMap<int> map;
    map.try_emplace({&fact, 1}, 7);
    map.clear();
    EXPECT_TRUE(map.try_emplace({&fact, 1}).second);
}

}  // namespace
}  // namespace mp::lint
