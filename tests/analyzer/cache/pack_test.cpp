#include "analyzer/cache/pack.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

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

    // Files share most of their texts, and each has one of its own.
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
    std::vector<std::string> paths;
    for (int i = 99; i >= 0; --i) paths.emplace_back(unit(i).path.str());
    for (const int threads : {1, 8}) {
        FactsPack pack = open();
        const std::vector<Unit> read = pack.read({paths.begin(), paths.end()}, threads);
        ASSERT_EQ(read.size(), paths.size());
        for (int i = 0; i < 100; ++i) EXPECT_EQ(read[i], unit(99 - i)) << i;
    }
}

TEST_F(PackTest, HeadsComeBack) {
    fill(3, 4);
    const FactsPack pack = open();
    const PackedFile* head = pack.find("/p/3.py");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->module, "m");
    EXPECT_EQ(head->imports, (std::vector<std::uint64_t>{~0u, 1}));
    EXPECT_FALSE(pack.find("/p/4.py"));
}

}  // namespace
}  // namespace mp::lint
