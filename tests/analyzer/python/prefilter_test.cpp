#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {
namespace {

TEST(Prefilter, FindsAWordWhereverItStands) {
    for (std::size_t blanks = 0; blanks < 5; ++blanks)
        for (const std::string word :
             {"torch", "from jax", "import hmp", "x.half()", "bfloat16", "GradScaler", "fp16"}) {
            const std::string padding(blanks, '\n');
            EXPECT_TRUE(is_relevant("m.py", padding + "def f(): pass\n" + word)) << blanks << word;
            EXPECT_TRUE(is_relevant("m.py", padding + word + "\ndef f(): pass\n")) << blanks << word;
            EXPECT_TRUE(is_relevant("m.py", padding + word)) << blanks << word;
        }
}

TEST(Prefilter, OrdinaryCodeIsSkipped) {
    EXPECT_FALSE(is_relevant("m.py", "import os\n\ndef main():\n    print(os.getcwd())\n"));
    EXPECT_FALSE(is_relevant("m.py", ""));
    EXPECT_FALSE(is_relevant("m.py", "x"));
    EXPECT_FALSE(is_relevant("m.py", "def f(): pass  # tor ch ha lf"));
}

TEST(Prefilter, FilesThatOnlyHandNamesOnAreKept) {
    EXPECT_TRUE(is_relevant("m.py", "from .losses import kl\n__all__ = ['kl']\n"));
    EXPECT_FALSE(is_relevant("m.py", "from .util import f\n\ndef g():\n    return f()\n"));
}

TEST(Prefilter, PackagesThatHandNamesOnBesideWhatTheyDefineAreKept) {
    constexpr std::string_view kText = "from .util import f\n\ndef g():\n    return f()\n";
    EXPECT_TRUE(is_relevant("pkg/__init__.py", kText));
    EXPECT_TRUE(is_relevant("__init__.py", kText));
    EXPECT_FALSE(is_relevant("pkg/my__init__.py", kText));
    EXPECT_FALSE(is_relevant("pkg/__init__.py", "def g():\n    return 1\n")) << "nothing to hand on";
}

// The text has eight megabytes, so that a scan per word would exceed the time limit of ctest.
TEST(Prefilter, ReadsALargeFileToItsEnd) {
    std::string text = "def f():\n";
    while (text.size() < 8'000'000) text += "    handle = open(path, encoding='utf-8')  # all the rest\n";
    EXPECT_FALSE(is_relevant("m.py", text));
    EXPECT_TRUE(is_relevant("m.py", text + "    torch.autocast('cuda')\n"));
}

class ModuleName : public testing::Test {
protected:
    void SetUp() override {
        namespace fs = std::filesystem;
        root_ = fs::path(testing::TempDir()) /
                ("module_name_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                 testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::create_directories(root_ / "src" / "pkg" / "sub");
        fs::create_directories(root_ / "scripts");
        std::ofstream(root_ / "src" / "pkg" / "__init__.py");
        std::ofstream(root_ / "src" / "pkg" / "sub" / "__init__.py");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    std::string name_of(const std::string& below) const {
        return module_name((root_ / below).string(), root_.string());
    }

    std::filesystem::path root_;
};

TEST_F(ModuleName, PackagesBeginAboveTheirOutermostInit) {
    EXPECT_EQ(name_of("src/pkg/train.py"), "pkg.train");
    EXPECT_EQ(name_of("src/pkg/sub/model.py"), "pkg.sub.model");
    EXPECT_EQ(name_of("src/pkg/__init__.py"), "pkg");
    EXPECT_EQ(name_of("src/pkg/sub/__init__.py"), "pkg.sub");
    EXPECT_EQ(name_of("src/pkg/notes.ipynb"), "pkg.notes");
}

TEST_F(ModuleName, OtherFilesAreNamedBelowTheRoot) {
    EXPECT_EQ(name_of("train.py"), "train");
    EXPECT_EQ(name_of("scripts/run.py"), "scripts.run");
    EXPECT_EQ(module_name("/elsewhere/x.py", root_.string()), "x");
}

}  // namespace
}  // namespace mp::lint::python
