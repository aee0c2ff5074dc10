#include "kernels/base/paths.hpp"

#include <filesystem>

#include "tests/kernels/base/temporary_folder.hpp"

namespace mp {
namespace {

TEST(Paths, AbsolutePathsAreThoseOfTheText) {
    EXPECT_EQ(absolute_path("a/../b.cu", "/p"), "/p/b.cu");
    EXPECT_EQ(absolute_path("/a//b/./c", "/p"), "/a/b/c");
    EXPECT_EQ(absolute_path(".", "/p/"), "/p");
}

TEST(Paths, BelowTheBaseBecomeRelative) {
    EXPECT_EQ(relative_path("/a/b/c.cu", "/a/b"), "c.cu");
    EXPECT_EQ(relative_path("/a/b/c.cu", "/a/b/"), "c.cu");
    EXPECT_EQ(relative_path("/a/bc/d.cu", "/a/b"), "/a/bc/d.cu");
    EXPECT_EQ(relative_path("/a/b", "/"), "/a/b");
    EXPECT_EQ(relative_path("/a/b", ""), "/a/b");
}

using Links = TemporaryFolder;

TEST_F(Links, AFileIsNotReachedAroundALink) {
    std::filesystem::create_directories(path("far/away"));
    write("far/x.cu", "");
    write("y.cu", "");
    std::filesystem::create_directory_symlink(path("far/away"), path("link"));
    EXPECT_EQ(absolute_file("link/../x.cu", path()), path("link/../x.cu")) << "far/x.cu, not x.cu";
    EXPECT_EQ(absolute_file("far/../y.cu", path()), path("y.cu"));
    EXPECT_EQ(absolute_file("none/../y.cu", path()), path("y.cu"));
    EXPECT_EQ(real_path(path("link/../x.cu")), std::filesystem::canonical(path("far/x.cu")).string());
    EXPECT_EQ(real_path("no/such"), "no/such");
}

}  // namespace
}  // namespace mp
