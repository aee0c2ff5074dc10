#include "analyzer/driver/discover.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DiscoverTest : public TemporaryTree {
protected:
    Result<Discovered> find(const std::vector<std::string>& inputs, int threads = 1) const {
        return discover(
            inputs, path(), [this](const std::string& p) { return p == path("src/excluded"); }, threads);
    }
};

TEST_F(DiscoverTest, DirectoriesGiveSourcesAndHeaders) {
    for (const char* name :
         {"src/a.cu", "src/b/c.cpp", "src/d.cc", "src/e.cxx", "src/f.cuh", "src/g.txt", "src/h.c"}) {
        write(name);
    }
    const auto found = find({"src"});
    ASSERT_TRUE(found);
    EXPECT_THAT(found->sources,
                ElementsAre(path("src/a.cu"), path("src/b/c.cpp"), path("src/d.cc"), path("src/e.cxx")));
    EXPECT_THAT(found->headers, ElementsAre(path("src/f.cuh")));
    EXPECT_THAT(found->named, IsEmpty());
}

TEST_F(DiscoverTest, HiddenBuildAndExcludedDirectoriesAreSkippedUnlessNamed) {
    for (const char* name : {"src/.git/a.cu", "src/build/a.cu", "src/out/a.cu", "src/out/CMakeCache.txt",
                             "src/excluded/a.cu", "src/cmake-build-debug/a.cu"}) {
        write(name);
    }
    EXPECT_THAT(find({"src"})->sources, IsEmpty());
    EXPECT_THAT(find({"src/build"})->sources, ElementsAre(path("src/build/a.cu")));
    EXPECT_THAT(find({"src/excluded/a.cu"})->named, ElementsAre(path("src/excluded/a.cu")));
}

TEST_F(DiscoverTest, LinksNeitherLoopNorDouble) {
    write("src/a.cu");
    fs::create_directory_symlink("..", root_ / "src/up");
    fs::create_symlink("a.cu", root_ / "src/b.cu");
    fs::create_symlink("nowhere.cu", root_ / "src/c.cu");
    EXPECT_THAT(find({"src"})->sources, ElementsAre(path("src/a.cu")));
    EXPECT_THAT(find({"src", ".", "src/a.cu"})->named, ElementsAre(path("src/a.cu")));
    EXPECT_THAT(find({"src", ".", "src/a.cu"})->sources, IsEmpty());
}

TEST_F(DiscoverTest, ThreadsFindWhatOneFinds) {
    for (int i = 0; i < 60; ++i) {
        const std::string at = "src/d" + std::to_string(i % 7) + "/e" + std::to_string(i % 5);
        write(at + "/m" + std::to_string(i) + ".py");
        write(at + "/notes" + std::to_string(i) + ".md");
    }
    fs::create_directory_symlink("d3", root_ / "src/a_link");
    fs::create_directory_symlink("../..", root_ / "src/d3/up");
    fs::create_symlink("../../d1/e1/m1.py", root_ / "src/d2/e1/n.py");
    const auto one = find({"src"}, 1), many = find({"src"}, 8);
    ASSERT_TRUE(one);
    ASSERT_TRUE(many);
    EXPECT_EQ(one->python.size(), 60u) << "each file once, whatever leads to it";
    ASSERT_EQ(many->python.size(), one->python.size());
    for (std::size_t i = 0; i < one->python.size(); ++i) EXPECT_EQ(many->python[i].path, one->python[i].path);
}

TEST_F(DiscoverTest, WhatIsNeitherFileNorDirectoryIsAnError) {
    ::mkfifo(path("pipe.cu").c_str(), 0600);
    EXPECT_THAT(find({"pipe.cu"}).error().message, HasSubstr("neither a file nor a directory"));
    EXPECT_THAT(find({"missing.cu"}).error().message, HasSubstr("missing.cu: No such file"));
    fs::create_symlink("loop.cu", root_ / "loop.cu");
    EXPECT_FALSE(find({"loop.cu"}));
}

TEST_F(DiscoverTest, AFifoInADirectoryIsLeftAlone) {
    ::mkfifo(path("pipe.cu").c_str(), 0600);
    write("a.cu");
    EXPECT_THAT(find({"."})->sources, ElementsAre(path("a.cu")));
}

TEST_F(DiscoverTest, VeryDeepTreesAreWalked) {
    fs::path deep = root_;
    for (int i = 0; i < 500; ++i) deep /= "d";
    fs::create_directories(deep);
    std::ofstream(deep / "a.cu") << "x";
    EXPECT_EQ(find({"."})->sources.size(), 1u);
}

}  // namespace
}  // namespace mp::lint
