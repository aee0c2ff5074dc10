#include "analyzer/driver/output.hpp"

#include <fcntl.h>

#include <iterator>

#include <gmock/gmock.h>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

TEST(OutputOption, FormatAndFile) {
    EXPECT_EQ(parse_output("json")->format, Format::json);
    EXPECT_EQ(parse_output("json")->file, "");
    EXPECT_EQ(parse_output("sarif=a=b.sarif")->file, "a=b.sarif");
    EXPECT_EQ(parse_output("text=-")->file, "");
    EXPECT_EQ(parse_output("markdown=$S")->format, Format::markdown);
    EXPECT_EQ(parse_output("gitlba").error().hint, "did you mean 'gitlab'?");
    EXPECT_EQ(parse_output("sarf").error().hint, "did you mean 'sarif'?");
    EXPECT_FALSE(parse_output("sarif="));
}

using OutputFileTest = TemporaryTree;

TEST_F(OutputFileTest, AppearsWholeOrNotAtAll) {
    write("out.json", "old");
    {
        const auto abandoned = OutputFile::open(path("out.json"));
        ASSERT_TRUE(abandoned);
    }
    std::ifstream before(path("out.json"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(before), {}), "old");
    auto file = OutputFile::open(path("out.json"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->commit("new"));
    std::ifstream after(path("out.json"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after), {}), "new");
    EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1) << "nothing temporary is left";
}

TEST_F(OutputFileTest, AnUnwritablePlaceIsKnownAtOnce) {
    EXPECT_THAT(OutputFile::open("/proc/no/such.json").error().message,
                testing::HasSubstr("cannot be written"));
}

TEST(WriteAll, AFullDiskIsAnError) {
    const int full = ::open("/dev/full", O_WRONLY);
    ASSERT_GE(full, 0);
    EXPECT_FALSE(write_all(full, "x"));
    ::close(full);
}

}  // namespace
}  // namespace mp::lint
