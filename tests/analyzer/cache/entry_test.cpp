#include "analyzer/cache/entry.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

CacheEntry sample() {
    CacheEntry e;
    e.files = {{.path = "/a/b.cu", .size = 7, .mtime_ns = 12345, .hash = 99}};
    e.missing = {"gone.h"};
    e.directories = {{.path = "/a", .mtime_ns = 5, .names = 6}};
    const std::string text(10000, 'f');
    e.raw_size = text.size();
    e.packed = pack_text(text);
    return e;
}

TEST(CacheEntry, ComesBackAsItWasWritten) {
    const auto e = read_entry(write_entry(sample()));
    ASSERT_TRUE(e);
    ASSERT_EQ(e->files.size(), 1u);
    EXPECT_EQ(e->files[0].path, "/a/b.cu");
    EXPECT_EQ(e->files[0].mtime_ns, 12345);
    EXPECT_EQ(e->missing, std::vector<std::string>{"gone.h"});
    ASSERT_EQ(e->directories.size(), 1u);
    EXPECT_EQ(e->directories[0].names, 6u);
    EXPECT_EQ(unpack_text(*e), std::string(10000, 'f'));
}

TEST(CacheEntry, EveryShorterPrefixAndEveryFlippedByteIsRefused) {
    const std::string whole = write_entry(sample());
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read_entry(whole.substr(0, size)));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
        EXPECT_FALSE(read_entry(damaged)) << "byte " << at;
    }
}

}  // namespace
}  // namespace mp::lint
