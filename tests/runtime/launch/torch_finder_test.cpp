#include "runtime/launch/torch_finder.hpp"

#include <gmock/gmock.h>

#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Torches : public TemporaryDirectory {
protected:
    // Something ELF that has no torch in it: /bin/true under another name.
    void make_torch(const std::string& package) const {
        write(package + "/lib/libtorch_cpu.so", content_of("/bin/true"));
        write(package + "/include/ATen/ATen.h", "");
        write(package + "/version.py", "__version__ = '9.8.7+cpu'\ndebug = False\n");
        write(package + "/__init__.py", "raise SystemExit('torch was imported')\n");
    }
    static Variables with(const std::string& entry) {
        Variables out = Variables::of_this_process();
        out.set(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
        return out;
    }
};

constexpr const char* kPython = "/usr/bin/python3";

TEST(ListLines, GiveThePathOfTorch) {
    EXPECT_EQ(torch_in_list_line("\tlibtorch_cpu.so.1.13 => /usr/lib/x/libtorch_cpu.so.1.13 (0x00007f)"),
              "/usr/lib/x/libtorch_cpu.so.1.13");
    EXPECT_EQ(torch_in_list_line("\tlibtorch_cpu.so => /a b/(x)/libtorch_cpu.so (0x1)"),
              "/a b/(x)/libtorch_cpu.so");
    for (const char* line : {"", "\tlibtorch_cpu.so => not found", "\tlibc.so.6 => /lib/libc.so.6 (0x1)",
                             "\tlibtorch_cpu.so => (0x1)", "libtorch_cpu.so => libtorch_cpu.so (0x1)"}) {
        EXPECT_EQ(torch_in_list_line(line), "") << line;
    }
}

TEST(Version, IsReadWithoutImporting) {
    EXPECT_EQ(version_in("from x import y\n__version__ = '2.11.0+cu130'\n"), "2.11.0+cu130");
    EXPECT_EQ(version_in("__version__ = \"1.13\"\n"), "1.13");
    EXPECT_EQ(version_in("__all__ = ['__version__', 'debug']\n__version__ = '2.11.0'\n"), "2.11.0");
    for (const char* text : {"", "__version__", "__version__ = 1\n", "__version__ = '2\n'"})
        EXPECT_EQ(version_in(text), "") << text;
}

TEST_F(Torches, AreFoundInADirectory) {
    make_torch("torch");
    const auto torch = torch_at(path("torch"));
    ASSERT_TRUE(torch);
    EXPECT_EQ(torch->root, path("torch"));
    EXPECT_EQ(torch->library, path("torch/lib/libtorch_cpu.so"));
    EXPECT_EQ(torch->version, "9.8.7+cpu");
    EXPECT_THAT(torch_at(path()).error().message, HasSubstr("no libtorch_cpu.so"));
}

TEST_F(Torches, WithSplitHeadersHaveTheirCommonPrefixAsRoot) {
    write("usr/lib/x86_64-linux-gnu/libtorch_cpu.so.9.8", content_of("/bin/true"));
    write("usr/include/ATen/ATen.h", "");
    const auto torch = torch_at(path("usr"));
    ASSERT_TRUE(torch);
    EXPECT_EQ(torch->root, path("usr"));
    EXPECT_EQ(torch->version, "9.8");
    std::filesystem::remove_all(path("usr/include"));
    EXPECT_EQ(torch_at(path("usr"))->root, "") << "the headers are not installed";
}

TEST_F(Torches, OfAPythonAreFoundWithoutImportingThem) {
    make_torch("site/torch");
    const auto torch = torch_of_python(kPython, with("PYTHONPATH=" + path("site")));
    ASSERT_TRUE(torch) << torch.error().message;
    ASSERT_TRUE(torch->has_value());
    EXPECT_EQ((*torch)->root, path("site/torch"));
}

TEST_F(Torches, InTheWorkingDirectoryAreNotLookedAt) {
    make_torch("cwd/torch");
    write("cwd/os.py", "raise SystemExit('imported from the working directory')\n");
    write("cwd/importlib.py", "raise SystemExit('imported from the working directory')\n");
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(path("cwd"));
    Variables variables = Variables::of_this_process();
    variables.unset("PYTHONPATH");
    const auto torch = torch_of_python(kPython, variables);
    std::filesystem::current_path(before);
    ASSERT_TRUE(torch) << torch.error().message;
    if (torch->has_value()) EXPECT_NE((*torch)->root, path("cwd/torch"));
}

TEST_F(Torches, AreFoundThoughSomebodyPrints) {
    make_torch("site/torch");
    write("site/sitecustomize.py", "print('hello')\nimport sys\nprint('world', file=sys.stderr)\n");
    const auto torch = torch_of_python(kPython, with("PYTHONPATH=" + path("site")));
    ASSERT_TRUE(torch && torch->has_value());
}

TEST_F(Torches, AnotherModuleOfThatNameIsNone) {
    write("site/torch.py", "print('no library here')\n");
    const auto torch = torch_of_python(kPython, with("PYTHONPATH=" + path("site")));
    ASSERT_TRUE(torch);
    EXPECT_FALSE(torch->has_value());
}

TEST_F(Torches, APythonThatDoesNotAnswerIsAnError) {
    EXPECT_FALSE(torch_of_python(write("python3", "#!/bin/sh\nexit 3\n", 0755), Variables({})));
    EXPECT_FALSE(torch_of_python("/bin/true", Variables({})));
    EXPECT_FALSE(torch_of_python(write("cut", "#!/bin/sh\nprintf '\\0torch\\0/usr'\n", 0755), Variables({})));
    EXPECT_FALSE(torch_of_python(path("gone"), Variables({})));
}

TEST_F(Torches, OfProgramsAreAskedFromTheLoader) {
    EXPECT_FALSE(torch_of_program("/bin/true", Variables({})));
    EXPECT_FALSE(torch_of_program(write("script", "#!/bin/sh\n", 0755), Variables({})));
    EXPECT_FALSE(torch_of_program(path("gone"), Variables({})));
#ifdef MP_TORCH_LINKED
    // A program linked with a library of that name, in a separate directory.
    const auto torch = torch_of_program(MP_TORCH_LINKED, Variables({}));
    ASSERT_TRUE(torch.has_value());
    EXPECT_THAT(torch->library, HasSubstr("libtorch_cpu.so"));
#endif
}

TEST_F(Torches, AreFoundBehindLaunchers) {
    make_torch("site/torch");
    const Variables variables = with("PYTHONPATH=" + path("site"));
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{kPython, "x.py"}, {"env", "A=1", kPython, "x.py"}, {"nice", kPython}}) {
        const auto torch = torch_of_command(command, variables);
        ASSERT_TRUE(torch && torch->has_value()) << command[0];
        EXPECT_EQ((*torch)->root, path("site/torch"));
    }
    EXPECT_FALSE(torch_of_command({"true", kPython}, variables)->has_value());
    EXPECT_FALSE(torch_of_command({"nothing-of-this-name"}, variables)->has_value());
}

}  // namespace
}  // namespace mp::launch
