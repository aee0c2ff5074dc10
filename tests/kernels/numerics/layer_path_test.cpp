#include "kernels/numerics/layer_path.hpp"

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(LayerPath, ParentAndLeafTakeItApart) {
    const LayerPath path("encoder.layers.3");
    EXPECT_EQ(path.leaf(), "3");
    EXPECT_EQ(path.parent(), LayerPath("encoder.layers"));
    EXPECT_EQ(path.depth(), 3);
    EXPECT_EQ(path.parent().append(path.leaf()), path);
}

TEST(LayerPath, TheRootIsItsOwnParent) {
    EXPECT_TRUE(LayerPath{}.is_root());
    EXPECT_EQ(LayerPath{}.parent(), LayerPath{});
    EXPECT_EQ(LayerPath{}.leaf(), "");
    EXPECT_EQ(LayerPath{}.depth(), 0);
    EXPECT_EQ(LayerPath("head").parent(), LayerPath{});
    EXPECT_EQ(LayerPath{}.append("head"), LayerPath("head"));
}

TEST(LayerPath, OnePlaceHasOnePath) {
    EXPECT_EQ(LayerPath(".a..b."), LayerPath("a.b"));
    EXPECT_EQ(LayerPath("..."), LayerPath{});
    EXPECT_EQ(LayerPath("a").append("b.c"), LayerPath("a.b.c"));
    EXPECT_EQ(LayerPath("a").append(""), LayerPath("a"));
    EXPECT_EQ(std::hash<LayerPath>{}(LayerPath("a..b")), std::hash<LayerPath>{}(LayerPath("a.b")));
}

TEST(LayerPath, ContainsGoesByPartsNotByLetters) {
    EXPECT_TRUE(LayerPath("layers.1").contains(LayerPath("layers.1.attn")));
    EXPECT_TRUE(LayerPath("layers.1").contains(LayerPath("layers.1")));
    EXPECT_TRUE(LayerPath{}.contains(LayerPath("x")));
    EXPECT_FALSE(LayerPath("layers.1").contains(LayerPath("layers.10")));
    EXPECT_FALSE(LayerPath("layers.1.attn").contains(LayerPath("layers.1")));
}

}  // namespace
}  // namespace mp
