#include "runtime/launch/target.hpp"

#include <gmock/gmock.h>

#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Commands : public TemporaryDirectory {
protected:
    Inspected look(const std::string& file, const std::string& path_variable = "/usr/bin:/bin") const {
        return inspect(file, Variables({"PATH=" + path_variable}));
    }
};

TEST_F(Commands, AreFoundAsExecvpFindsThem) {
    write("a/tool", "#!/bin/sh\n", 0755);
    write("b/tool", "#!/bin/sh\n", 0755);
    EXPECT_EQ(find_command("tool", (path("a") + ":" + path("b")).c_str()).path, path("a/tool"));
    EXPECT_EQ(find_command("tool", (path("none") + ":" + path("b")).c_str()).path, path("b/tool"));
    EXPECT_EQ(find_command(path("a/tool"), "").path, path("a/tool"));
    EXPECT_EQ(find_command("sh", nullptr).status, 0) << "no PATH at all: the system's default";
}

TEST_F(Commands, ThatCannotRunHaveTheStatusOfEnv) {
    write("a/text", "x", 0644);
    write("b/text", "#!/bin/sh\n", 0755);
    const std::string both = path("a") + ":" + path("b");
    EXPECT_EQ(find_command("text", both.c_str()).path, path("b/text")) << "the search goes on behind it";
    EXPECT_EQ(find_command("text", path("a").c_str()).status, 126);
    EXPECT_EQ(find_command(path("a/text"), "").status, 126);
    EXPECT_EQ(find_command(path("a"), "").status, 126) << "a directory";
    EXPECT_EQ(find_command("nothing-of-this-name", both.c_str()).status, 127);
    EXPECT_EQ(find_command(path("a/text/x"), "").status, 127) << "a file where a directory should be";
    EXPECT_EQ(find_command("", both.c_str()).status, 127);
    EXPECT_EQ(find_command(std::string(100000, 'x'), both.c_str()).status, 127);
}

TEST_F(Commands, NamesWithBlanksAndNewlinesAreFound) {
    write("my tools/a\nb", "#!/bin/sh\n", 0755);
    EXPECT_EQ(find_command("a\nb", path("my tools").c_str()).path, path("my tools/a\nb"));
    EXPECT_EQ(find_command("a\nc", path("my tools").c_str()).error.message, "'a\nc': not found in PATH");
}

TEST(PythonNames, AreRecognised) {
    for (const char* name : {"python", "python3", "python3.11", "python3.13t", "python3-dbg", "python2.7"})
        EXPECT_TRUE(is_python_name(name)) << name;
    for (const char* name : {"pythonx", "python3.11-config", "ipython", "bash", "", "python-argcomplete"})
        EXPECT_FALSE(is_python_name(name)) << name;
}

TEST(Shebang, IsSplitAsTheKernelDoes) {
    EXPECT_THAT(shebang_of("#!/usr/bin/python3\nx"), ElementsAre("/usr/bin/python3"));
    EXPECT_THAT(shebang_of("#! /usr/bin/env  -S python3 -u \nx"),
                ElementsAre("/usr/bin/env", "-S python3 -u"));
    EXPECT_THAT(shebang_of("#!/bin/sh"), ElementsAre("/bin/sh"));
    for (const char* none : {"", "#!", "#!\n", "#! \n", "import os\n", " #!/bin/sh\n"})
        EXPECT_THAT(shebang_of(none), IsEmpty()) << none;
    EXPECT_LE(shebang_of("#!" + std::string(10000, 'x'))[0].size(), 256u);
}

TEST(EnvArguments, GiveTheProgram) {
    EXPECT_EQ(program_of_env({"python3"}), "python3");
    EXPECT_EQ(program_of_env({"-S python3 -u"}), "python3");
    EXPECT_EQ(program_of_env({"-S", "A=1 python3"}), "python3");
    EXPECT_EQ(program_of_env({"-i", "-u", "HOME", "A=b", "python3", "x.py"}), "python3");
    EXPECT_EQ(program_of_env({"--split-string=python3 x"}), "python3");
    EXPECT_EQ(program_of_env({}), "");
    EXPECT_EQ(program_of_env({"-S"}), "");
    EXPECT_EQ(program_of_env({"A=1"}), "");
}

TEST_F(Commands, PythonIsSeenThroughScripts) {
    const std::string python = write("bin/python3.11", "#!/bin/sh\n", 0755);
    EXPECT_EQ(look(python).target.python, python) << "a shim that is a shell script";
    EXPECT_EQ(look(write("torchrun", "#!" + python + "\n", 0755)).target.python, python);
    EXPECT_EQ(look(write("t2", "#!/usr/bin/env python3.11\n", 0755), path("bin")).target.python, python);
    const char* pip = "#!/bin/sh\n'''exec' \"/long path/python3\" \"$0\" \"$@\"\n' '''\n";
    EXPECT_EQ(look(write("t3", pip, 0755)).target.python, "/long path/python3");
    EXPECT_EQ(look(write("t4", "#!/bin/sh\necho\n", 0755)).target.python, "");
    EXPECT_EQ(look(write("t5", "echo no shebang\n", 0755)).target.python, "");
}

TEST_F(Commands, MissingInterpretersAreFoundBeforeTheStart) {
    const Inspected gone = look(write("a", "#!/nowhere/python3\n", 0755));
    EXPECT_EQ(gone.status, 127);
    EXPECT_THAT(gone.error.message, HasSubstr("/nowhere/python3"));
    EXPECT_EQ(look(write("b", "#!" + write("plain", "x", 0644) + "\n", 0755)).status, 126);
    EXPECT_EQ(look(write("c", "#!/usr/bin/env nothing-of-this-name\n", 0755)).status, 0)
        << "env says so itself";
    EXPECT_EQ(look("/bin/sh").status, 0);
}

TEST_F(Commands, InterpretersInACircleEnd) {
    write("a", "#!" + path("b") + "\n", 0755);
    write("b", "#!" + path("a") + "\n", 0755);
    EXPECT_EQ(look(path("a")).status, 0);
}

TEST_F(Commands, OfThisMachineAreTraceable) {
    EXPECT_EQ(look("/proc/self/exe").target.traceable, Traceable::yes);
    EXPECT_EQ(look(write("script", "#!/bin/sh\n", 0755)).target.traceable, Traceable::yes);
}

TEST_F(Commands, OfAnotherKindAreLeftAlone) {
    std::string own = content_of("/bin/true");
    ASSERT_GT(own.size(), 1000u);
    std::string other = own;
    other[18] = 0x28;  // e_machine: 32-bit Arm
    EXPECT_EQ(look(write("arm", other, 0755)).target.traceable, Traceable::no);
    other = own;
    other[4] = 1;  // ELFCLASS32
    EXPECT_EQ(look(write("small", other, 0755)).target.traceable, Traceable::no);
    other = own;
    const std::size_t loader = other.find("ld-linux");
    ASSERT_NE(loader, std::string::npos);
    other.replace(loader, 8, "ld-other");
    const Inspected musl = look(write("musl", other, 0755));
    EXPECT_EQ(musl.target.traceable, Traceable::no);
    EXPECT_THAT(musl.target.reason, HasSubstr("another C library"));
}

TEST_F(Commands, ThatRunAsSomebodyElseAreLeftAlone) {
    const std::string file = write("su", content_of("/bin/true"), 0755);
    ASSERT_EQ(::chmod(file.c_str(), 04755), 0);
    EXPECT_EQ(look(file).target.traceable, Traceable::yes) << "setuid to oneself changes nothing";
    if (::getuid() != 0) GTEST_SKIP() << "only root can give a file away";
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod(file.c_str(), 04755), 0);
    EXPECT_EQ(look(file).target.traceable, Traceable::no);
    ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
    EXPECT_EQ(look(file).target.traceable, Traceable::yes);
}

TEST(Candidates, LieBehindLaunchersOnly) {
    EXPECT_THAT(torch_candidates({"python", "x.py"}), ElementsAre("python"));
    EXPECT_THAT(torch_candidates({"/usr/bin/mpirun", "-np", "2", "./train", "-x"}),
                ElementsAre("/usr/bin/mpirun", "2", "./train"));
    EXPECT_THAT(torch_candidates({"env", "A=1", "python3", "python4"}), ElementsAre("env", "python3"));
    EXPECT_THAT(torch_candidates({"cp", "python3", "x"}), ElementsAre("cp"));
    EXPECT_THAT(torch_candidates({}), IsEmpty());
}

}  // namespace
}  // namespace mp::launch
