#include "analyzer/cache/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "kernels/base/parallel.hpp"
#include "tests/analyzer/facts/full_unit.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

class StoreTest : public testing::Test {
protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("mp-pack-" + std::to_string(::getpid()));
        fs::remove_all(root_);
        fs::create_directories(root_);
    }
    void TearDown() override { fs::remove_all(root_); }
    FactStore open() const { return FactStore(file()); }

    std::string file() const { return (root_ / "facts.pack").string(); }
    std::string key(int number) const {
        return (root_ / std::to_string(number)).string() + std::string(1, '\0') + "variant";
    }

    // Files share most of their texts, and each has one text that no other file has.
    static Unit unit(int number) {
        Unit u = full_unit();
        u.path = Symbol("/p/" + std::to_string(number) + ".py");
        return u;
    }
    void fill(int first, int last) const {
        SegmentWriter segment;
        for (int i = first; i < last; ++i) {
            const Unit u = unit(i);
            write_record(segment, {.key = key(i), .imports = {~0u, 1}, .mentions = {"ds.json"}}, u);
        }
        FactStore store = open();
        store.add(segment.take());
        ASSERT_TRUE(store.save());
    }

    fs::path root_;
};

TEST_F(StoreTest, ThreadsReadWhatOneReads) {
    fill(0, 60);
    fill(60, 100);
    for (const int threads : {1, 8}) {
        FactStore store = open();
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(store.find(key(i))) << i;
        std::vector<Unit> read(100);
        in_parallel(read.size(), threads,
                    [&](std::size_t i) { read[i] = store.read(key(static_cast<int>(i))); });
        for (int i = 0; i < 100; ++i) EXPECT_EQ(read[static_cast<std::size_t>(i)], unit(i)) << i;
    }
}

TEST_F(StoreTest, WhatWasReadAheadIsWhatIsRead) {
    fill(0, 3);
    FactStore store = open();
    EXPECT_TRUE(store.read_ahead());
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 3; ++i) EXPECT_EQ(store.read(key(i)), unit(i)) << i;
    while (store.read_ahead()) {
    }
    SegmentWriter segment;
    write_record(segment, {.key = key(1)}, unit(7));
    store.add(segment.take());
    ASSERT_TRUE(store.save());
    ASSERT_TRUE(store.find(key(1)));
    EXPECT_EQ(store.read(key(1)), unit(7)) << "not what was read ahead of it";
    EXPECT_EQ(store.read(key(2)), unit(2));
}

TEST_F(StoreTest, WhatWasSavedIsFound) {
    fill(0, 2);
    FactStore store = open();
    EXPECT_FALSE(store.find(key(2)));
    SegmentWriter segment;
    write_record(segment, {.key = key(1), .mentions = {"now"}}, unit(7));
    write_record(segment, {.key = key(2)}, unit(2));
    store.add(segment.take());
    EXPECT_FALSE(store.find(key(2))) << "not before it is written";
    ASSERT_TRUE(store.save());
    ASSERT_TRUE(store.find(key(2)));
    EXPECT_EQ(store.read(key(2)), unit(2));
    EXPECT_EQ(store.find(key(1))->mentions.at(0), "now");
    EXPECT_EQ(store.read(key(1)), unit(7));
    EXPECT_EQ(store.read(key(0)), unit(0));
    FactStore again = open();
    ASSERT_TRUE(again.find(key(1)));
    EXPECT_EQ(again.read(key(1)), unit(7));
}

TEST_F(StoreTest, HeadsComeBack) {
    StoredHead head{.key = key(3), .has_facts = false, .is_seed = false, .imports = {~0u, 1}};
    head.inputs.files = {{.path = Symbol("/p/3.cu"), .id = {7, -5, 9}, .hash = ~std::uint64_t{0}}};
    head.inputs.missing = {Symbol("gone.h")};
    head.inputs.directories = {{.path = Symbol("/p"), .mtime_ns = 11, .names = 12}};
    SegmentWriter segment;
    write_record(segment, head, unit(3));
    FactStore written = open();
    written.add(segment.take());
    ASSERT_TRUE(written.save());

    FactStore store = open();
    const StoredHead* read = store.find(key(3));
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->has_facts);
    EXPECT_TRUE(read->is_relevant);
    EXPECT_FALSE(read->is_seed);
    EXPECT_EQ(read->imports, head.imports);
    ASSERT_EQ(read->inputs.files.size(), 1u);
    EXPECT_EQ(read->inputs.files[0].path.str(), "/p/3.cu");
    EXPECT_EQ(read->inputs.files[0].id, (FileId{7, -5, 9}));
    EXPECT_EQ(read->inputs.files[0].hash, ~std::uint64_t{0});
    EXPECT_EQ(read->inputs.missing, head.inputs.missing);
    ASSERT_EQ(read->inputs.directories.size(), 1u);
    EXPECT_EQ(read->inputs.directories[0].names, 12u);
    EXPECT_NE(read->facts.hash, 0u);
    EXPECT_THAT(read->facts.lines, testing::Contains(Line{Symbol("other.py"), 2}));
    Unit shell = unit(3);
    shell.functions.clear();
    shell.dependencies.clear();
    EXPECT_EQ(store.read_shell(key(3)), shell);
    EXPECT_EQ(store.read(key(3)), unit(3));
    EXPECT_FALSE(store.find(key(4)));
}

TEST_F(StoreTest, ATornTailCostsItsOwnRecordsAndIsMended) {
    fill(0, 2);
    const auto whole = fs::file_size(file());
    fill(2, 3);
    fs::resize_file(file(), fs::file_size(file()) - 1);  // killed during a write
    {
        FactStore store = open();
        EXPECT_TRUE(store.find(key(1)));
        EXPECT_FALSE(store.find(key(2)));
        EXPECT_TRUE(store.damaged());
        EXPECT_EQ(store.read(key(1)), unit(1));
    }
    EXPECT_GT(fs::file_size(file()), whole);
    for (const char* name : {"0", "1", "3"}) std::ofstream(root_ / name);  // a rewrite keeps existing files
    fill(3, 4);
    FactStore store = open();
    EXPECT_TRUE(store.find(key(3)));
    EXPECT_EQ(store.read(key(0)), unit(0));
    EXPECT_EQ(store.read(key(1)), unit(1));
    EXPECT_FALSE(store.damaged());
}

TEST_F(StoreTest, DamageInTheMiddleIsNotRead) {
    fill(0, 1);
    fill(1, 2);
    std::fstream bytes(file(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(40);
    bytes.put('\x7f');
    bytes.close();
    FactStore store = open();
    EXPECT_FALSE(store.find(key(0)));
    EXPECT_TRUE(store.damaged());
}

TEST_F(StoreTest, RunsAtTheSameTimeKeepWhatEachAdds) {
    FactStore first = open(), second = open();
    EXPECT_FALSE(first.find(key(0)));
    EXPECT_FALSE(second.find(key(0)));
    for (FactStore* store : {&first, &second}) {
        SegmentWriter segment;
        const int i = store == &first ? 0 : 1;
        write_record(segment, {.key = key(i)}, unit(i));
        store->add(segment.take());
        ASSERT_TRUE(store->save());
    }
    FactStore store = open();
    EXPECT_EQ(store.read((store.find(key(0)), key(0))), unit(0));
    EXPECT_EQ(store.read(key(1)), unit(1));
    EXPECT_FALSE(store.damaged());
}

// Without the lock a reader would take half of a segment for damage and drop the other half.
TEST_F(StoreTest, AReaderWaitsForAWriter) {
    fill(0, 1);
    const auto whole = fs::file_size(file());
    std::string bytes(whole, '\0');
    std::ifstream(file(), std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(whole));
    const int fd = ::open(file().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_EQ(::flock(fd, LOCK_EX), 0);
    ASSERT_EQ(::write(fd, bytes.data(), 10), 10);
    std::thread writer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_EQ(::write(fd, bytes.data() + 10, whole - 10), static_cast<ssize_t>(whole - 10));
        ::close(fd);
    });
    FactStore store = open();
    EXPECT_TRUE(store.find(key(0)));
    EXPECT_FALSE(store.damaged());
    writer.join();
}

}  // namespace
}  // namespace mp::lint
