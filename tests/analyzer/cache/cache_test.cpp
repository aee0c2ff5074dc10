#include "analyzer/cache/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr long kOld = 1'000'000'000;  // 2001: no clock tick of today

class CacheTest : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("mp-cache-" + std::to_string(::getpid()));
        fs::remove_all(root_);
        fs::create_directories(root_ / "inc/sub");
        fs::create_directories(root_ / "early");
        write("main.cu", "main");
        write("inc/sub/a.h", "a");
        for (const char* d : {"", "inc", "inc/sub", "early"}) age(d);
    }
    void TearDown() override { fs::remove_all(root_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(root_ / name) << text;
        age(name);
    }
    void age(const std::string& name, long second = kOld) const {
        const timespec times[2] = {{second, 0}, {second, 0}};
        ::utimensat(AT_FDCWD, (root_ / name).c_str(), times, 0);
    }
    Cache open() const { return Cache::open((root_ / "cache").string()); }

    Unit unit() const {
        Unit u;
        FileStates files;
        for (const char* name : {"main.cu", "inc/sub/a.h"}) {
            const std::string path = (root_ / name).string();
            u.dependencies.push_back(
                {Symbol(path), files.stat(path).size, files.stat(path).mtime_ns, files.content_hash(path)});
        }
        u.coverage.missing_headers.emplace_back("lib/gone.h");
        return u;
    }
    void store() const {
        const std::vector<std::string> roots{(root_ / "early").string(), (root_ / "inc").string()};
        open().store(key_, unit(), "the facts", roots);
    }
    bool hit() const { return open().find(key_) == "the facts"; }

    fs::path root_;
    CacheKey key_{.high = 1, .low = 2};
};

TEST_F(CacheTest, AnUnchangedUnitIsFound) {
    EXPECT_FALSE(hit());
    store();
    EXPECT_TRUE(hit());
    EXPECT_FALSE(open().find({.high = 1, .low = 3}));
}

TEST_F(CacheTest, AChangedDependencyIsAMiss) {
    store();
    write("inc/sub/a.h", "b");
    age("inc/sub/a.h", kOld + 1);
    EXPECT_FALSE(hit()) << "same size, other content, other mtime";
    write("inc/sub/a.h", "longer");
    EXPECT_FALSE(hit()) << "other size under the old mtime";
    fs::remove(root_ / "inc/sub/a.h");
    EXPECT_FALSE(hit());
}

TEST_F(CacheTest, AFreshCheckoutOfTheSameContentIsAHit) {
    store();
    age("inc/sub/a.h", kOld + 7);
    age("main.cu", kOld + 7);
    age("inc", kOld + 7);
    EXPECT_TRUE(hit());
    EXPECT_TRUE(hit()) << "and stays one once the new mtimes are remembered";
}

TEST_F(CacheTest, AHeaderThatAppearsEarlierOnTheIncludePathIsAMiss) {
    store();
    fs::create_directories(root_ / "early/sub");
    write("early/sub/a.h", "shadow");
    EXPECT_FALSE(hit());
}

TEST_F(CacheTest, AMissingHeaderThatAppearsIsAMiss) {
    store();
    fs::create_directories(root_ / "inc/lib");
    write("inc/lib/gone.h", "here");
    EXPECT_FALSE(hit());
}

TEST_F(CacheTest, AHeaderBesideTheIncluderIsAMiss) {
    store();
    fs::create_directories(root_ / "sub");
    write("sub/a.h", "found first by quotes");
    EXPECT_FALSE(hit());
}

TEST_F(CacheTest, UnrelatedNewFilesDoNotMatter) {
    store();
    write("inc/other.h", "x");
    write("early/notes.txt", "x");
    write(".main.cu.swp", "x");
    EXPECT_TRUE(hit());
}

TEST_F(CacheTest, AFileWrittenJustNowIsComparedByContent) {
    std::ofstream(root_ / "main.cu") << "maim";  // mtime is now
    store();
    const auto before = fs::last_write_time(root_ / "main.cu");
    std::ofstream(root_ / "main.cu") << "MAIM";
    fs::last_write_time(root_ / "main.cu", before);  // a change within one clock tick
    EXPECT_FALSE(hit());
}

TEST_F(CacheTest, DamageIsAMissAndOneWarning) {
    store();
    for (const auto& file : fs::directory_iterator(root_ / "cache")) {
        if (file.path().extension() == ".facts") std::ofstream(file.path()) << "garbage";
    }
    Cache cache = open();
    EXPECT_FALSE(cache.find(key_));
    EXPECT_FALSE(cache.find(key_));
    EXPECT_THAT(cache.warnings(), ElementsAre(HasSubstr("damaged")));
    store();
    EXPECT_TRUE(hit());
}

TEST_F(CacheTest, AnUnusableDirectoryIsAWarning) {
    Cache cache = Cache::open("/proc/no/such");
    EXPECT_FALSE(cache.enabled());
    EXPECT_THAT(cache.warnings(), ElementsAre(HasSubstr("/proc/no/such")));
    EXPECT_FALSE(cache.find(key_));
    cache.store(key_, unit(), "x", {});
    EXPECT_THAT(Cache::disabled().warnings(), IsEmpty());
}

TEST_F(CacheTest, NothingTemporaryIsLeftBehind) {
    store();
    store();
    int files = 0;
    for (const auto& file : fs::directory_iterator(root_ / "cache")) files += file.is_regular_file();
    EXPECT_EQ(files, 1);
}

TEST_F(CacheTest, WhatNobodyUsedForAMonthIsRemovedAndNothingElse) {
    store();
    write("cache/README", "not ours");
    const std::string entry = "cache/" + key_.hex() + ".facts";
    age(entry);
    age("cache/README");
    open().evict();
    EXPECT_FALSE(fs::exists(root_ / entry));
    EXPECT_TRUE(fs::exists(root_ / "cache/README"));
    store();
    age(entry);
    open().evict();
    EXPECT_TRUE(fs::exists(root_ / entry)) << "at most once a day";
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
