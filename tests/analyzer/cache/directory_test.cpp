#include "analyzer/cache/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void age(const fs::path& path) {
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};  // 2001
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

TEST(CacheDirectory, AnUnusableOneIsAnError) {
    const auto opened = open_cache_directory("/proc/no/such");
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, HasSubstr("no cache: /proc/no/such"));
    EXPECT_THAT(open_cache_directory("").error().message, HasSubstr("--cache-dir"));
}

TEST(CacheDirectory, FilesUnusedForAMonthAreRemovedAndNothingElse) {
    const fs::path root = fs::temp_directory_path() / ("mp-evict-" + std::to_string(::getpid()));
    fs::remove_all(root);
    ASSERT_TRUE(open_cache_directory(root.string()));
    const std::array<std::string_view, 1> parts{"x"};
    const fs::path ours = root / (make_key(parts).hex() + ".pack"),
                   used = root / (make_key({}).hex() + ".run");
    for (const fs::path& path : {ours, used, root / "README"}) {
        std::ofstream(path) << "x";
        age(path);
    }
    mark_used(used.string());
    evict_old_files(root.string());
    EXPECT_FALSE(fs::exists(ours));
    EXPECT_TRUE(fs::exists(used));
    EXPECT_TRUE(fs::exists(root / "README"));
    std::ofstream(ours) << "x";
    age(ours);
    evict_old_files(root.string());
    EXPECT_TRUE(fs::exists(ours)) << "at most once a day";
    fs::remove_all(root);
}

TEST(CacheKey, PartsDoNotRunIntoEachOther) {
    const std::array<std::string_view, 2> a{"ab", "c"}, b{"a", "bc"};
    EXPECT_NE(make_key(a).hex(), make_key(b).hex());
    EXPECT_EQ(make_key(a).hex(), make_key(a).hex());
    EXPECT_EQ(make_key(a).hex().size(), 32u);
}

TEST(CacheDirectory, FollowsXdg) {
    ::setenv("XDG_CACHE_HOME", "/x", 1);
    EXPECT_EQ(default_cache_directory(), "/x/mp-lint");
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    ::setenv("HOME", "/h", 1);
    EXPECT_EQ(default_cache_directory(), "/h/.cache/mp-lint");
    ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace mp::lint
