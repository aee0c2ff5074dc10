#include "analyzer/clang/guarded_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/analyzer/clang/scratch.hpp"

namespace mp::lint {
namespace {

TEST(GuardedFiles, NoteWhatWasReadAndNothingElse) {
    Scratch dir;
    dir.write("a.h", "1");
    dir.write("b.h", "2");
    GuardedFiles files(dir.path());
    EXPECT_TRUE(files.status("b.h"));
    ASSERT_TRUE(files.getBufferForFile("a.h"));
    ASSERT_EQ(files.read_files().size(), 1u);
    EXPECT_EQ(files.read_files()[0].path.str(), dir.path() + "/a.h");
    EXPECT_EQ(files.read_files()[0].size, 1u);
    EXPECT_GT(files.read_files()[0].mtime_ns, 1'000'000'000);
}

TEST(GuardedFiles, OpenNoPipesDirectoriesOrDevices) {
    Scratch dir;
    ASSERT_EQ(mkfifo((dir.path() + "/pipe").c_str(), 0600), 0);
    GuardedFiles files(dir.path());
    for (const char* name : {"pipe", ".", "/dev/zero", "/dev/null"})
        EXPECT_FALSE(files.openFileForRead(name)) << name;
    EXPECT_TRUE(files.read_files().empty());
}

TEST(GuardedFiles, HideOnlyTheCudaHeadersOfADirectory) {
    Scratch dir;
    for (const char* name :
         {"cuda_fp8.h", "crt/host_defines.h", "vector_types.h", "stdlib.h", "other/cuda_fp8.h"}) {
        dir.write(name, "");
    }
    GuardedFiles files(dir.path());
    files.hide_in(GuardedFiles::Headers::cuda, dir.path());
    const auto seen = [&](const std::string& name) { return files.exists(dir.path() + "/" + name); };
    EXPECT_FALSE(seen("cuda_fp8.h"));
    EXPECT_FALSE(seen("crt/host_defines.h"));
    EXPECT_FALSE(seen("vector_types.h"));
    EXPECT_TRUE(seen("stdlib.h"));
    EXPECT_TRUE(seen("other/cuda_fp8.h"));
    EXPECT_FALSE(files.openFileForRead(dir.path() + "/cuda_fp8.h"));
}

}  // namespace
}  // namespace mp::lint
