#include "analyzer/fix/files.hpp"

#include <sys/stat.h>

#include <iterator>

#include <gmock/gmock.h>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FixFiles : public TemporaryTree {
protected:
    std::string text(const std::string& name) const {
        std::ifstream in(path(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
};

TEST_F(FixFiles, TheTextChangesTheModeStays) {
    write("a.py", "old\n");
    ::chmod(path("a.py").c_str(), 0751);
    ASSERT_TRUE(replace_unchanged(path("a.py"), "old\n", "new\n"));
    EXPECT_EQ(text("a.py"), "new\n");
    struct stat info{};
    ::stat(path("a.py").c_str(), &info);
    EXPECT_EQ(info.st_mode & 07777, 0751u);
    EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1) << "nothing temporary is left";
}

TEST_F(FixFiles, AFileThatChangedMeanwhileIsLeftAlone) {
    write("a.py", "edited\n");
    const Status done = replace_unchanged(path("a.py"), "old\n", "new\n");
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("changed since it was analysed"));
    EXPECT_EQ(text("a.py"), "edited\n");
    EXPECT_FALSE(replace_unchanged(path("gone.py"), "", "new\n"));
    EXPECT_FALSE(fs::exists(path("gone.py")));
}

TEST_F(FixFiles, ALinkStaysALink) {
    write("real.py", "old\n");
    fs::create_symlink("real.py", path("link.py"));
    ASSERT_TRUE(replace_unchanged(path("link.py"), "old\n", "new\n"));
    EXPECT_TRUE(fs::is_symlink(path("link.py")));
    EXPECT_EQ(text("real.py"), "new\n");
}

TEST_F(FixFiles, TheDiffIsOneThatPatchTakes) {
    write("a.py", "one\r\ntwo\nthree");
    const FixedFile file{path("a.py"), "one\r\ntwo\nthree", "one\r\n2\nthree", 1};
    const Result<std::string> diff = unified_diff(file, "src/a.py");
    ASSERT_TRUE(diff) << diff.error().message;
    EXPECT_EQ(*diff,
              "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\r\n-two\n+2\n three\n"
              "\\ No newline at end of file\n");
    write("d", *diff);
    fs::create_directory(path("src"));
    fs::rename(path("a.py"), path("src/a.py"));
    ASSERT_EQ(std::system(("cd '" + path() + "' && git apply --unsafe-paths d").c_str()), 0);
    EXPECT_EQ(text("src/a.py"), file.after);
}

TEST_F(FixFiles, ANameCannotAddLinesToTheDiff) {
    write("a", "x\n");
    const FixedFile file{path("a"), "x\n", "y\n", 1};
    EXPECT_THAT(*unified_diff(file, "/x/a"), testing::StartsWith("--- a/x/a\n+++ b/x/a\n"));
    EXPECT_THAT(*unified_diff(file, "a\n+++ b/etc"), HasSubstr("--- a/a\\n+++ b/etc\n"));
}

}  // namespace
}  // namespace mp::lint
