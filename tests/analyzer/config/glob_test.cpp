#include "analyzer/config/glob.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

TEST(Glob, StarsStayWithinAComponent) {
    EXPECT_TRUE(glob_match("*.cu", "norm.cu"));
    EXPECT_FALSE(glob_match("*.cu", "src/norm.cu"));
    EXPECT_TRUE(glob_match("src/*.cu", "src/norm.cu"));
    EXPECT_TRUE(glob_match("n?rm.cu", "norm.cu"));
    EXPECT_FALSE(glob_match("src?norm.cu", "src/norm.cu"));
}

TEST(Glob, TwoStarsCrossComponents) {
    EXPECT_TRUE(glob_match("third_party/**", "third_party/a/b.cu"));
    EXPECT_TRUE(glob_match("**/b.cu", "third_party/a/b.cu"));
    EXPECT_TRUE(glob_match("a/**/b.cu", "a/b.cu"));
    EXPECT_TRUE(glob_match("a/**/b.cu", "a/x/y/b.cu"));
    EXPECT_FALSE(glob_match("a/**/b.cu", "a/xb.cu"));
}

TEST(Glob, SetsTakeOneByte) {
    EXPECT_TRUE(glob_match("mp40[1-3]", "mp402"));
    EXPECT_FALSE(glob_match("mp40[1-3]", "mp405"));
    EXPECT_TRUE(glob_match("mp40[!1-3]", "mp405"));
    EXPECT_TRUE(glob_match("a[b", "a[b")) << "a set that is never closed is text";
}

TEST(Glob, ManyStarsAreNotSlow) {
    const auto start = std::chrono::steady_clock::now();
    std::string pattern, text(3000, 'a');
    for (int i = 0; i < 50; ++i) pattern += "*a";
    EXPECT_FALSE(glob_match(pattern + "b", text));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Glob, APatternWithoutSlashMatchesAnyComponent) {
    EXPECT_TRUE(path_matches("third_party", "third_party/a.cu"));
    EXPECT_TRUE(path_matches("third_party", "src/third_party/a.cu"));
    EXPECT_TRUE(path_matches("*.pb.cc", "src/gen/a.pb.cc"));
    EXPECT_FALSE(path_matches("third", "third_party/a.cu"));
}

TEST(Glob, APatternWithSlashStartsAtTheTop) {
    EXPECT_TRUE(path_matches("src/gen", "src/gen/deep/a.cu"));
    EXPECT_TRUE(path_matches("./src/gen/", "src/gen/a.cu"));
    EXPECT_FALSE(path_matches("gen/a.cu", "src/gen/a.cu"));
    EXPECT_FALSE(path_matches("", "src/a.cu"));
}

}  // namespace
}  // namespace mp::lint
