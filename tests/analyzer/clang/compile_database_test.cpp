#include <gmock/gmock.h>

#include "analyzer/clang/extract.hpp"
#include "tests/analyzer/clang/scratch.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Result<CompileDatabase> load(const Scratch& dir, const std::string& text) {
    return CompileDatabase::load(dir.write("compile_commands.json", text));
}

TEST(CompileDatabase, ReadsCommandsAndArguments) {
    Scratch dir;
    const auto database =
        load(dir, R"([{"directory": "/p", "file": "a.cpp", "command": "c++ '-DX=a b' -c a.cpp"},
                                        {"directory": "/p", "file": "b.cpp", "arguments": ["c++", "-DX=a b"],
                                         "command": "ignored", "output": "b.o"}])");
    ASSERT_TRUE(database) << database.error().message;
    EXPECT_THAT(database->commands[0].arguments, ElementsAre("c++", "-DX=a b", "-c", "a.cpp"));
    EXPECT_THAT(database->commands[1].arguments, ElementsAre("c++", "-DX=a b"));
}

TEST(CompileDatabase, RelativeDirectoryIsBelowTheDatabase) {
    Scratch dir;
    const auto database = load(dir, R"([{"directory": "sub", "file": "a.cpp", "command": "c++ -c a.cpp"}])");
    ASSERT_TRUE(database);
    EXPECT_EQ(database->commands[0].directory, dir.path() + "/sub");
}

TEST(CompileDatabase, IsFoundInParentsAndTheirBuildDirectories) {
    Scratch dir;
    dir.write("build/dev/compile_commands.json", "[]");
    const auto source = dir.write("src/deep/a.cpp", "");
    EXPECT_EQ(CompileDatabase::find(source), dir.path() + "/build/dev/compile_commands.json");
    dir.write("src/compile_commands.json", "[]");
    EXPECT_EQ(CompileDatabase::find(source), dir.path() + "/src/compile_commands.json");
    EXPECT_EQ(CompileDatabase::find(dir.path() + "/src"), dir.path() + "/src/compile_commands.json");
}

TEST(CompileDatabase, BrokenOnesAreErrorsThatNameThem) {
    Scratch dir;
    const std::string deep(100'000, '[');
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("null"), std::string("[{}]"), deep,
          std::string(R"([{"file": 3}])"), std::string(R"([{"file": "a.cpp"}])"),
          std::string(R"([{"file": "a.cpp", "arguments": ["c++", 1]}])"),
          std::string(R"([{"file": "a\u0000.cpp", "command": "c++"}])"), std::string("[1]")}) {
        const auto database = load(dir, text);
        ASSERT_FALSE(database) << text.substr(0, 40);
        EXPECT_THAT(database.error().message, HasSubstr("compile_commands.json"));
    }
}

TEST(CompileDatabase, ThatIsMissingSaysHowToMakeOne) {
    Scratch dir;
    const auto database = CompileDatabase::load(dir.path());
    ASSERT_FALSE(database);
    EXPECT_THAT(database.error().hint, HasSubstr("CMAKE_EXPORT_COMPILE_COMMANDS"));
}

TEST(DefaultCommand, SearchesTheProjectsUsualDirectories) {
    Scratch dir;
    fs::create_directories(dir.path() + "/.git");
    fs::create_directories(dir.path() + "/include");
    fs::create_directories(dir.path() + "/docs");
    const auto file = dir.write("src/ops/a.cpp", "");
    const auto command = default_command(file, {"-DMINE"});
    EXPECT_THAT(command.arguments, Contains("-I" + dir.path() + "/src/ops"));
    EXPECT_THAT(command.arguments, Contains("-I" + dir.path()));
    EXPECT_THAT(command.arguments, Contains("-I" + dir.path() + "/include"));
    EXPECT_THAT(command.arguments, Contains("-I" + dir.path() + "/src"));
    EXPECT_THAT(command.arguments, Contains("-std=c++20"));
    EXPECT_THAT(command.arguments, Contains("-DWITH_CUDA"));
    EXPECT_THAT(command.arguments, Contains("-DMINE"));
    EXPECT_THAT(command.arguments, testing::Not(Contains("-I" + dir.path() + "/docs")));
}

TEST(DefaultCommand, SwitchesOnWhatACudaFileAsksFor) {
    Scratch dir;
    const std::string text =
        "#ifndef OPS_CU\n#ifdef ZENITH_HAS_CUDA\n#if defined(USE_CUDA) && !CUDA_VERSION\n"
        "#if __CUDA_ARCH__ > 700\n// HAVE_CUDA\n#endif\n#ifdef NO_CUDA\n";
    const auto of = [&](const std::string& name) {
        return default_command(dir.write(name, text), {}).arguments;
    };
    EXPECT_THAT(of("a.cu"), testing::IsSupersetOf({"-DZENITH_HAS_CUDA=1", "-DUSE_CUDA=1"}));
    for (const std::string_view other : {"CUDA_VERSION", "__CUDA_ARCH__", "HAVE_CUDA", "NO_CUDA"})
        EXPECT_THAT(of("a.cu"), testing::Not(Contains("-D" + std::string(other) + "=1"))) << other;
    EXPECT_THAT(of("a.cpp"), testing::Not(Contains("-DUSE_CUDA=1")));
}

TEST(DefaultCommand, KnowsAProjectWithoutARepository) {
    Scratch dir;
    dir.write("LICENSE", "");
    fs::create_directories(dir.path() + "/include");
    const auto command = default_command(dir.write("src/backend/cuda/a.cu", ""), {});
    EXPECT_THAT(command.arguments, Contains("-I" + dir.path() + "/include"));
}

TEST(DefaultCommand, DoesNotClimbOutOfTheProject) {
    Scratch dir;
    fs::create_directories(dir.path() + "/include");
    fs::create_directories(dir.path() + "/project/.git");
    const auto command = default_command(dir.write("project/a.cu", ""), {});
    EXPECT_THAT(command.arguments, testing::Not(Contains("-I" + dir.path() + "/include")));
}

}  // namespace
}  // namespace mp::lint
