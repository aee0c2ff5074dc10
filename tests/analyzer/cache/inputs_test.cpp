#include "analyzer/cache/inputs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr long kOld = 1'000'000'000;  // 2001: no clock tick of today

class InputsTest : public testing::Test {
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

    Unit unit() const {
        Unit u;
        FileStates files;
        for (const char* name : {"main.cu", "inc/sub/a.h"}) {
            const std::string path = (root_ / name).string();
            u.dependencies.push_back({Symbol(path), files.stat(path).id.size, files.stat(path).id.mtime_ns,
                                      files.content_hash(path)});
        }
        u.coverage.missing_headers.emplace_back("lib/gone.h");
        return u;
    }
    void store() {
        FileStates files;
        auto inputs = inputs_of(unit(), {(root_ / "early").string(), (root_ / "inc").string()}, files);
        ASSERT_TRUE(inputs);
        inputs_ = *inputs;
    }
    InputsMatch match() {
        FileStates files;
        return match_inputs(inputs_, files);
    }
    bool hit() { return match() != InputsMatch::changed; }

    fs::path root_;
    Inputs inputs_;
};

TEST_F(InputsTest, AnUnchangedUnitIsFound) {
    store();
    EXPECT_EQ(match(), InputsMatch::same);
}

TEST_F(InputsTest, AChangedDependencyIsAMiss) {
    store();
    write("inc/sub/a.h", "b");
    age("inc/sub/a.h", kOld + 1);
    EXPECT_FALSE(hit()) << "same size, other content, other mtime";
    write("inc/sub/a.h", "longer");
    EXPECT_FALSE(hit()) << "other size under the old mtime";
    fs::remove(root_ / "inc/sub/a.h");
    EXPECT_FALSE(hit());
}

TEST_F(InputsTest, AFreshCheckoutOfTheSameContentIsAHit) {
    store();
    age("inc/sub/a.h", kOld + 7);
    age("main.cu", kOld + 7);
    age("inc", kOld + 7);
    EXPECT_EQ(match(), InputsMatch::touched);
    EXPECT_EQ(match(), InputsMatch::same) << "the new times are remembered";
}

TEST_F(InputsTest, AHeaderThatAppearsEarlierOnTheIncludePathIsAMiss) {
    store();
    fs::create_directories(root_ / "early/sub");
    write("early/sub/a.h", "shadow");
    EXPECT_FALSE(hit());
}

TEST_F(InputsTest, AMissingHeaderThatAppearsIsAMiss) {
    store();
    fs::create_directories(root_ / "inc/lib");
    write("inc/lib/gone.h", "here");
    EXPECT_FALSE(hit());
}

TEST_F(InputsTest, AHeaderBesideTheIncluderIsAMiss) {
    store();
    fs::create_directories(root_ / "sub");
    write("sub/a.h", "found first by quotes");
    EXPECT_FALSE(hit());
}

TEST_F(InputsTest, UnrelatedNewFilesDoNotMatter) {
    store();
    write("inc/other.h", "x");
    write("early/notes.txt", "x");
    write(".main.cu.swp", "x");
    EXPECT_TRUE(hit());
}

TEST_F(InputsTest, AFileWrittenJustNowIsComparedByContent) {
    std::ofstream(root_ / "main.cu") << "maim";  // mtime is now
    store();
    const auto before = fs::last_write_time(root_ / "main.cu");
    std::ofstream(root_ / "main.cu") << "MAIM";
    fs::last_write_time(root_ / "main.cu", before);  // a change within one clock tick
    EXPECT_FALSE(hit());
}

TEST_F(InputsTest, AUnitThatReadAFileThatChangedSinceHasNone) {
    Unit u = unit();
    write("main.cu", "longer main");
    FileStates files;
    EXPECT_FALSE(inputs_of(u, {}, files));
    u.dependencies.clear();
    EXPECT_FALSE(inputs_of(u, {}, files)) << "nothing is known of it";
}

}  // namespace
}  // namespace mp::lint
