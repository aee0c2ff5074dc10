#include "kernels/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/kernels/base/temporary_folder.hpp"

namespace mp {
namespace {

using Files = TemporaryFolder;

TEST_F(Files, ARegularFileIsReadWhole) {
    const std::string bytes("a\0b\n", 4);
    write("a", bytes);
    std::string into = "before";
    EXPECT_TRUE(read_file(path("a"), into));
    EXPECT_EQ(into, bytes);
    EXPECT_FALSE(read_file(path("a"), into, 3)) << "larger than the limit";
    EXPECT_FALSE(read_file(path(), into));
    EXPECT_FALSE(read_file(path("none"), into));
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    EXPECT_FALSE(read_file(path("fifo"), into)) << "and does not wait";
}

TEST_F(Files, ANamedFileSaysWhyItIsNotRead) {
    write("a", "12345");
    EXPECT_EQ(*read_named_file(path("a"), 5, "5 bytes"), "12345");
    EXPECT_EQ(read_named_file(path("a"), 4, "4 bytes").error().message, "larger than 4 bytes");
    EXPECT_EQ(read_named_file(path(), 4, "4 bytes").error().message, "not a readable file");
}

TEST_F(Files, AReplacedFileIsWholeAndLeavesNothingBehind) {
    write("a", "old");
    ASSERT_TRUE(replace_file(path("a"), "new"));
    EXPECT_EQ(text("a"), "new");
    ASSERT_TRUE(replace_file(path("a"), "newer", {.mode = 0751, .sync = true}));
    EXPECT_EQ(text("a"), "newer");
    struct stat info{};
    ::stat(path("a").c_str(), &info);
    EXPECT_EQ(info.st_mode & 07777, 0751u);
    EXPECT_EQ(entries(), 1) << "nothing temporary";
}

TEST_F(Files, AFileThatCannotBeReplacedSaysWhyAndStays) {
    EXPECT_FALSE(replace_file(path("none/a"), "new"));
    EXPECT_EQ(errno, ENOENT);
    std::filesystem::create_directory(path("d"));
    EXPECT_FALSE(replace_file(path("d"), "new"));
    EXPECT_EQ(errno, EISDIR) << "of the rename, not of what was cleaned up after it";
    EXPECT_EQ(entries(), 1);
}

TEST_F(Files, OutputAppearsWholeOrNotAtAll) {
    write("out.json", "old");
    {
        const auto abandoned = OutputFile::open(path("out.json"));
        ASSERT_TRUE(abandoned);
    }
    EXPECT_EQ(text("out.json"), "old");
    auto file = OutputFile::open(path("out.json"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->commit("new"));
    EXPECT_EQ(text("out.json"), "new");
    EXPECT_EQ(entries(), 1) << "nothing temporary is left";
}

TEST(OutputFile, AnUnwritablePlaceIsKnownAtOnce) {
    EXPECT_EQ(OutputFile::open("/proc/no/such.json").error().message, "No such file or directory");
}

TEST(OutputFile, ADeviceIsWrittenToAndStaysOne) {
    auto null = OutputFile::open("/dev/null");
    ASSERT_TRUE(null);
    EXPECT_TRUE(null->commit("x"));
    auto full = OutputFile::open("/dev/full");
    ASSERT_TRUE(full);
    EXPECT_EQ(full->commit("x").error().message, "No space left on device");
}

TEST(WriteAll, AFullDiskIsAnError) {
    const int full = ::open("/dev/full", O_WRONLY);
    ASSERT_GE(full, 0);
    EXPECT_FALSE(write_all(full, "x"));
    EXPECT_EQ(errno, ENOSPC);
    ::close(full);
}

}  // namespace
}  // namespace mp
