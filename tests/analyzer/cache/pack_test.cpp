#include "analyzer/cache/pack.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "kernels/base/parallel.hpp"
#include "tests/analyzer/facts/full_unit.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

class PackTest : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("mp-pack-" + std::to_string(::getpid()));
        fs::remove_all(root_);
        fs::create_directories(root_);
    }
    void TearDown() override { fs::remove_all(root_); }
    FactsPack open() const { return {root_.string(), (root_ / "facts.pack").string()}; }

    // Files share most of their strings, and each has one string of its own.
    static Unit unit(int number) {
        Unit u = full_unit();
        u.path = Symbol("/p/" + std::to_string(number) + ".py");
        return u;
    }
    void fill(int first, int last) const {
        SegmentWriter segment;
        for (int i = first; i < last; ++i) {
            const Unit u = unit(i);
            write_record(segment, {.path = u.path.str(), .module = "m", .id = {}, .imports = {~0u, 1}}, u);
        }
        FactsPack pack = open();
        pack.add(segment.take());
        ASSERT_TRUE(pack.save());
    }

    fs::path root_;
};

TEST_F(PackTest, ThreadsReadWhatOneReads) {
    fill(0, 60);
    fill(60, 100);
    for (const int threads : {1, 8}) {
        FactsPack pack = open();
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(pack.find(unit(i).path.str())) << i;
        std::vector<Unit> read(100);
        in_parallel(read.size(), threads,
                    [&](std::size_t i) { read[i] = pack.read(unit(static_cast<int>(i)).path.str()); });
        for (int i = 0; i < 100; ++i) EXPECT_EQ(read[static_cast<std::size_t>(i)], unit(i)) << i;
    }
}

TEST_F(PackTest, WhatWasReadAheadIsWhatIsRead) {
    fill(0, 3);
    FactsPack pack = open();
    EXPECT_TRUE(pack.read_ahead());
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 3; ++i) EXPECT_EQ(pack.read(unit(i).path.str()), unit(i)) << i;
    while (pack.read_ahead()) {
    }
    SegmentWriter segment;
    write_record(segment, {.path = "/p/1.py", .module = "m", .id = {}}, unit(7));
    pack.add(segment.take());
    ASSERT_TRUE(pack.save());
    ASSERT_TRUE(pack.find("/p/1.py"));
    EXPECT_EQ(pack.read("/p/1.py"), unit(7)) << "not what was read ahead of it";
    EXPECT_EQ(pack.read("/p/2.py"), unit(2));
}

TEST_F(PackTest, WhatWasSavedIsFound) {
    fill(0, 2);
    FactsPack pack = open();
    EXPECT_FALSE(pack.find("/p/2.py"));
    SegmentWriter segment;
    write_record(segment, {.path = "/p/1.py", .module = "now", .id = {}}, unit(7));
    write_record(segment, {.path = "/p/2.py", .module = "m", .id = {}}, unit(2));
    pack.add(segment.take());
    EXPECT_FALSE(pack.find("/p/2.py")) << "not before it is written";
    ASSERT_TRUE(pack.save());
    ASSERT_TRUE(pack.find("/p/2.py"));
    EXPECT_EQ(pack.read("/p/2.py"), unit(2));
    EXPECT_EQ(pack.find("/p/1.py")->module, "now");
    EXPECT_EQ(pack.read("/p/1.py"), unit(7));
    EXPECT_EQ(pack.read("/p/0.py"), unit(0));
    FactsPack again = open();
    ASSERT_TRUE(again.find("/p/1.py"));
    EXPECT_EQ(again.read("/p/1.py"), unit(7));
}

TEST_F(PackTest, HeadsComeBack) {
    fill(3, 4);
    FactsPack pack = open();
    const PackedFile* head = pack.find("/p/3.py");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->module, "m");
    EXPECT_EQ(head->imports, (std::vector<std::uint64_t>{~0u, 1}));
    EXPECT_FALSE(pack.find("/p/4.py"));
}

}  // namespace
}  // namespace mp::lint
