#include "runtime/launch/build_adapter.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "runtime/launch/layout.hpp"
#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Sub-builds that compile nothing: they note that they ran, take a moment, and copy a file or fail.
constexpr const char* kBegin = R"(cmake_minimum_required(VERSION 3.25)
project(adapter NONE)
file(APPEND ${CMAKE_SOURCE_DIR}/../../../ran "x")
file(WRITE ${CMAKE_SOURCE_DIR}/../../../measure "${MP_MEASURE_LIB}")
execute_process(COMMAND sleep 0.3)
)";
constexpr const char* kGoodBuild = R"(add_custom_target(copy ALL COMMAND ${CMAKE_COMMAND} -E copy
  ${CMAKE_SOURCE_DIR}/library.txt ${MP_ADAPTER_OUT}/libmptrace_torch_0123456789abcdef.so)
)";
constexpr const char* kBadBuild = R"(add_custom_target(fail ALL
  COMMAND cat ${CMAKE_SOURCE_DIR}/library.txt COMMAND false)
)";

class Adapters : public TemporaryDirectory {
protected:
    void SetUp() override {
        TemporaryDirectory::SetUp();
        write_build(kGoodBuild);
        write("src/instrument/torch/library.txt", "first");
    }
    void write_build(const std::string& end) const {
        write("src/instrument/torch/CMakeLists.txt", kBegin + end);
    }
    void break_build() const {
        write_build(kBadBuild);
        write("src/instrument/torch/library.txt",
              "[1/9] c++ x\nadapter.cpp:3: error: no member named 'nobody'\n");
    }
    Torch torch() const {
        return {
            .library = path("libtorch_cpu.so"), .root = path(), .id = "0123456789abcdef", .version = "9.8"};
    }
    AdapterBuild build(bool force = false) const {
        return {.sources = path("src"),
                .measure = path("libmp_measure.a"),
                .out = path("cache/adapters"),
                .force = force,
                .variables = Variables::of_this_process(),
                .progress = {}};
    }
    std::string library() const { return path("cache/adapters/libmptrace_torch_0123456789abcdef.so"); }
    std::size_t builds() const { return content_of(path("ran")).size(); }
    std::size_t entries() const {
        std::size_t n = 0;
        for (const auto& e : std::filesystem::directory_iterator(path("cache/adapters"))) n += e.exists();
        return n;
    }
};

TEST_F(Adapters, AreBuiltIntoAPrivateDirectory) {
    const auto made = build_adapter(torch(), build());
    ASSERT_TRUE(made) << made.error().message << made.error().hint;
    EXPECT_EQ(*made, library());
    EXPECT_EQ(content_of(library()), "first");
    EXPECT_EQ(entries(), 3u) << "library, lock and stamp";
    struct stat info{};
    ASSERT_EQ(::stat(path("cache/adapters").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST_F(Adapters, AreLinkedWithOurMeasuringLibrary) {
    ASSERT_TRUE(build_adapter(torch(), build()));
    EXPECT_EQ(content_of(path("measure")), path("libmp_measure.a"));
}

TEST_F(Adapters, AreBuiltOnceUntilTheSourcesChange) {
    ASSERT_TRUE(build_adapter(torch(), build()));
    EXPECT_FALSE(is_outdated(path("cache/adapters"), torch().id, path("src")));
    ASSERT_TRUE(build_adapter(torch(), build()));
    EXPECT_EQ(builds(), 1u);
    write("src/instrument/torch/library.txt", "second");
    EXPECT_TRUE(is_outdated(path("cache/adapters"), torch().id, path("src")));
    ASSERT_TRUE(build_adapter(torch(), build()));
    EXPECT_EQ(content_of(library()), "second");
    ASSERT_TRUE(build_adapter(torch(), build(true)));
    EXPECT_EQ(builds(), 3u) << "--force builds whatever is there";
}

TEST_F(Adapters, AreBuiltAgainWhenAHeaderOfTheBaseRoomChanges) {
    write("src/kernels/base/result.hpp", "first");
    ASSERT_TRUE(build_adapter(torch(), build()));
    write("src/kernels/base/result.hpp", "second");
    EXPECT_TRUE(is_outdated(path("cache/adapters"), torch().id, path("src")));
}

TEST_F(Adapters, WithoutTheirSourcesAreTrusted) {
    EXPECT_EQ(fingerprint_of(path("nowhere")), "");
    EXPECT_FALSE(is_outdated(path(), torch().id, path("nowhere")));
    EXPECT_EQ(fingerprint_of(path("src")).size(), 16u);
}

TEST_F(Adapters, OfRanksThatStartTogetherAreBuiltOnce) {
    std::vector<std::thread> ranks;
    std::vector<std::string> made(4);
    for (std::string& file : made) {
        ranks.emplace_back([&] {
            const auto built = build_adapter(torch(), build());
            if (built) file = content_of(*built);
        });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::string& content : made) EXPECT_EQ(content, "first");
    EXPECT_EQ(builds(), 1u);
}

TEST_F(Adapters, ThatCannotBeBuiltLeaveTheEndOfTheOutput) {
    break_build();
    const auto failed = build_adapter(torch(), build());
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message,
                StartsWith("no adapter for torch 9.8: compiling failed: adapter.cpp:3: error"));
    EXPECT_THAT(failed.error().message, Not(HasSubstr("\n")));
    EXPECT_THAT(content_of(path("cache/adapters/0123456789abcdef.log")), HasSubstr("nobody"));
    EXPECT_FALSE(std::filesystem::exists(library()));
    EXPECT_FALSE(std::filesystem::exists(path("cache/adapters/.build-0123456789abcdef")));
}

TEST_F(Adapters, ThatFailForOneRankFailForThoseThatWaited) {
    break_build();
    std::vector<std::thread> ranks;
    std::vector<std::string> errors(4);
    for (std::string& error : errors) {
        ranks.emplace_back([&] {
            const auto built = build_adapter(torch(), build());
            if (!built) error = built.error().message;
        });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
    EXPECT_EQ(builds(), 1u);
    EXPECT_FALSE(build_adapter(torch(), build()));
    EXPECT_EQ(builds(), 2u) << "but the next run tries again";
}

TEST_F(Adapters, AfterAKilledBuildAreBuilt) {
    write("cache/adapters/.build-0123456789abcdef/out/half", "x");
    write("cache/adapters/.0123456789abcdef.lock", "");
    EXPECT_TRUE(build_adapter(torch(), build()));
    EXPECT_FALSE(std::filesystem::exists(path("cache/adapters/.build-0123456789abcdef")));
}

TEST_F(Adapters, ThatTheBuildForgotAreAnError) {
    write_build("");
    EXPECT_THAT(build_adapter(torch(), build()).error().message, HasSubstr("made no libmptrace_torch_"));
}

TEST_F(Adapters, NeedSourcesHeadersAndTools) {
    Torch bare = torch();
    bare.root.clear();
    EXPECT_THAT(build_adapter(bare, build()).error().hint, HasSubstr("libtorch-dev"));
    AdapterBuild without = build();
    without.variables.set("PATH", path());
    EXPECT_THAT(build_adapter(torch(), without).error().message, HasSubstr("cmake"));
    without = build();
    without.sources = path("nowhere");
    EXPECT_THAT(build_adapter(torch(), without).error().message, HasSubstr("sources are missing"));
    EXPECT_FALSE(std::filesystem::exists(path("cache"))) << "nothing was begun";
}

TEST_F(Adapters, AreNotPutWhereOthersCanWrite) {
    std::filesystem::create_directories(path("cache/adapters"));
    ::chmod(path("cache/adapters").c_str(), 0777);
    EXPECT_THAT(build_adapter(torch(), build()).error().message, HasSubstr("everybody may write"));
    std::filesystem::remove(path("cache/adapters"));
    write("cache/adapters", "a file");
    EXPECT_FALSE(build_adapter(torch(), build()));
}

TEST(TellingLines, BeginAtTheFirstError) {
    EXPECT_EQ(telling_lines("a\nb\nx.cpp:1: error: no\nc\nd\n", 2), "x.cpp:1: error: no\nc");
    EXPECT_EQ(telling_lines("a\n\nb\nc", 2), "b\nc") << "or are the last";
    EXPECT_EQ(telling_lines("", 5), "");
    EXPECT_EQ(telling_lines("a", 0), "");
}

}  // namespace
}  // namespace mp::launch
