#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>

#include "tests/cli/cli_fixture.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kClean = "float twice(float x) { return x + x; }\n";

TEST_F(Cli, ExitCodesAreTheDocumentedOnes) {
    write("p/clean.cpp", kClean);
    write("p/bad.cu", kDefect);
    EXPECT_EQ(stubs("clean.cpp").code, 0);
    EXPECT_EQ(stubs("bad.cu").code, 1);
    EXPECT_EQ(stubs("--exit-zero bad.cu").code, 0);
    EXPECT_EQ(stubs("gone.cu").code, 2);
    EXPECT_EQ(stubs("--nonsense bad.cu").code, 2);
    fs::create_directories(path("p/empty"));
    EXPECT_EQ(stubs("empty").code, 2);
    write("p/broken.cpp", "this does not parse;\nfloat f(float x) { return x; }\n");
    EXPECT_EQ(stubs("broken.cpp").code, 0);
    EXPECT_EQ(stubs("--strict broken.cpp").code, 2);
    EXPECT_EQ(stubs("--strict clean.cpp").code, 0);
}

TEST_F(Cli, AFindingIsShownWithItsLine) {
    write("p/bad.cu", kDefect);
    const Outcome o = stubs("bad.cu");
    EXPECT_THAT(o.out, StartsWith("bad.cu:4:36: error: "));
    EXPECT_THAT(o.out, HasSubstr("[MP401 half-accumulator]\n    4 |     for (int i = 0; i < 4096; ++i) total "
                                 "= __hadd(total, x[i]);\n"
                                 "      |                                    ^~~"));
    EXPECT_THAT(o.out, HasSubstr("\n1 file, 1 finding (1 error) · "));
    EXPECT_THAT(o.err, IsEmpty());
}

TEST_F(Cli, TheLastLineSaysWhatWouldCompleteTheAnalysis) {
    write("p/.git/HEAD", "");
    write("p/.gitmodules",
          "[submodule \"a\"]\n\tpath = third_party/cutlass\n\turl = u\n"
          "[submodule \"b\"]\n\tpath = third_party/filled\n");
    write("p/third_party/filled/x.md", "");
    write("p/a.cu", "#include <cutlass/absent.h>\n" + std::string(kDefect) +
                        "extern \"C\" void run(const __half* x) { sum(x); }\n");
    write("p/lone.cuh", "template <typename T> T twice(T x) { return x + x; }\n");
    const Outcome o = stubs(".");
    EXPECT_THAT(o.out,
                AllOf(HasSubstr("a.cu:5:36: error: "),
                      HasSubstr(" · no compile_commands.json: add include folders with '-- -I DIR'"),
                      HasSubstr(" · 1 header with templates that no analysed file includes: lone.cuh")));
    EXPECT_EQ(o.err,
              "mp-lint: warning: git submodules are absent: third_party/cutlass "
              "('git submodule update --init' brings their headers)\n");
    EXPECT_THAT(stubs("a.cu -- -I inc").out, Not(HasSubstr("compile_commands.json")));
    write("p/a.cu", "#include \"lone.cuh\"\nint four() { return twice(2); }\n");
    const Outcome clean = stubs(".");
    EXPECT_THAT(clean.out, AllOf(Not(HasSubstr("compile_commands.json")), Not(HasSubstr("lone.cuh"))));
    EXPECT_EQ(clean.err, "");
}

TEST_F(Cli, TheHeadersOfTorchCanBeChosen) {
    write("p/a.cpp", "#include <ATen/ATen.h>\nint rank(const at::Tensor& x) { return x.marked(); }\n");
    write("p/lib/include/ATen/ATen.h", "namespace at { struct Tensor { int marked() const; }; }\n");
    EXPECT_EQ(stubs("--strict --torch-headers lib a.cpp").code, 0);
    EXPECT_EQ(stubs("--strict --torch-headers stubs a.cpp").code, 2);
    const Outcome o = stubs("--no-cache --verbose --torch-headers nowhere a.cpp");
    EXPECT_THAT(o.out, HasSubstr("no libtorch in "));
}

TEST_F(Cli, MistypedWordsGetASuggestionAndExitTwo) {
    const std::pair<const char*, const char*> cases[] = {
        {"--slect MP401", "did you mean '--select'?"},
        {"rulse", "did you mean 'rules'?"},
        {"--select half-acumulator", "did you mean 'half-accumulator'?"},
        {"rule MP40l", "did you mean 'MP40"},
        {"--output sarf", "did you mean 'sarif'?"},
        {"--color alway", "did you mean 'always'?"},
        {"--profile inferense", "did you mean 'inference'?"}};
    for (const auto& [arguments, hint] : cases) {
        const Outcome o = lint(arguments);
        EXPECT_EQ(o.code, 2) << arguments;
        EXPECT_THAT(o.err, AllOf(StartsWith("mp-lint: error: "), HasSubstr(hint)));
    }
}

TEST_F(Cli, WrongValuesAreRefused) {
    for (const char* arguments :
         {"-j 0", "-j x", "--timeout 0", "--timeout 1s", "--torch nonsense", "--assume fp32",
          "--config gone.toml", "-p gone", "--output json --output text", "rule", "facts"}) {
        write("p/a.cpp", kClean);
        const Outcome o = lint(std::string(arguments));
        EXPECT_EQ(o.code, 2) << arguments << o.out;
        EXPECT_THAT(o.err, StartsWith("mp-lint: error: ")) << arguments;
    }
}

TEST_F(Cli, RulesExplainThemselves) {
    EXPECT_THAT(lint("rules").out, HasSubstr("MP401  error    half-accumulator"));
    const Outcome by_id = lint("rule MP401");
    EXPECT_EQ(by_id.code, 0);
    EXPECT_THAT(by_id.out, StartsWith("# MP401 half-accumulator"));
    for (const char* part : {"## Why", "## Bad", "## Good", "## Fix", "mp-lint: disable=MP401"}) {
        EXPECT_THAT(by_id.out, HasSubstr(part));
    }
    EXPECT_THAT(by_id.out, Not(HasSubstr("expect:"))) << "test marks are not for readers";
    EXPECT_EQ(lint("rule half-accumulator").out, by_id.out);
}

TEST_F(Cli, HelpAndVersionSayWhatIsNeeded) {
    const Outcome help = lint("--help");
    EXPECT_EQ(help.code, 0);
    EXPECT_LT(help.out.find("mp-lint src"), help.out.find("--select RULES")) << "examples first";
    EXPECT_THAT(help.out, HasSubstr("--show-command"));
    const Outcome version = lint("--version");
    EXPECT_THAT(version.out,
                AllOf(StartsWith("mp-lint "), HasSubstr("clang version 19"), HasSubstr("CUDA headers: ")));
}

TEST_F(Cli, SeveralOutputsInOneRun) {
    write("p/bad.cu", kDefect);
    const Outcome o = stubs("--output text --output sarif=a.sarif --output json=a.json bad.cu");
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(o.out, StartsWith("bad.cu:4:36: error: "));
    const json sarif = json::parse(content_of(path("p/a.sarif")));
    EXPECT_EQ(sarif["runs"][0]["results"][0]["ruleId"], "MP401");
    EXPECT_TRUE(sarif["runs"][0]["results"][0]["partialFingerprints"].contains("primaryLocationLineHash"));
    const json report = json::parse(content_of(path("p/a.json")));
    EXPECT_EQ(report["findings"][0]["file"], "bad.cu");
    EXPECT_EQ(report["units"][0]["state"], "ok");
}

TEST_F(Cli, AnUnwritableOutputIsSaidBeforeTheWork) {
    write("p/bad.cu", kDefect);
    const Outcome o = stubs("--output json=no/such/a.json bad.cu");
    EXPECT_EQ(o.code, 2);
    EXPECT_THAT(o.err, HasSubstr("no/such/a.json: cannot be written"));
    EXPECT_THAT(o.out, IsEmpty());
}

TEST_F(Cli, StandardOutputMayBeFullOrClosed) {
    write("p/bad.cu", kDefect);
    EXPECT_EQ(shell(kLint + "--cuda stubs bad.cu >/dev/full").code, 2);
    EXPECT_EQ(shell(kLint + "--cuda stubs bad.cu >&-").code, 2);
    EXPECT_EQ(shell(kLint + "--cuda stubs bad.cu | true").err, "") << "a reader that went away is no error";
}

TEST_F(Cli, CommentsAndConfigurationSilence) {
    std::string text = kDefect;
    text.replace(text.find("x[i]);"), 6, "x[i]);  // mp-lint: disable=MP401 n is at most 4");
    write("p/a.cu", text);
    const Outcome commented = stubs("a.cu");
    EXPECT_EQ(commented.code, 0);
    EXPECT_THAT(commented.out, StartsWith("1 file, no findings · 1 suppressed · "));

    write("p/b.cu", kDefect);
    write("p/mp-lint.toml", "[per-file-ignores]\n\"b.cu\" = [\"half-accumulator\"]\n");
    EXPECT_EQ(stubs("b.cu").code, 0);
    EXPECT_EQ(stubs("--isolated b.cu").code, 1);
    write("p/mp-lint.toml", "selct = []\n");
    EXPECT_THAT(stubs("b.cu").err,
                AllOf(HasSubstr("mp-lint.toml:1: unknown key 'selct'"), HasSubstr("'select'")));
}

TEST_F(Cli, SelectAndIgnoreChooseRules) {
    write("p/bad.cu", kDefect);
    EXPECT_EQ(stubs("--ignore MP401 bad.cu").code, 0);
    EXPECT_EQ(stubs("--select MP5,MP6 bad.cu").code, 0);
    EXPECT_EQ(stubs("--select 'half-*' bad.cu").code, 1);
}

TEST_F(Cli, TheDatabaseSaysHowAFileIsBuilt) {
    write("p/src/a.cu", std::string("#ifdef HALF\n") + kDefect + "#endif\n");
    const std::string file = path("p/src/a.cu");
    const json database = {
        {{"directory", path("p")}, {"file", file}, {"arguments", {"nvcc", "-DHALF", "-c", file}}},
        {{"directory", path("p")}, {"file", file}, {"arguments", {"nvcc", "-c", file}}}};
    EXPECT_EQ(stubs("src").code, 0);
    write("p/build/compile_commands.json", database.dump());
    EXPECT_EQ(stubs("-p build src").code, 1);
    EXPECT_EQ(stubs("src").code, 1) << "found by itself in build/";
    EXPECT_EQ(stubs("src --").code, 0) << "flags after -- replace the database";
    EXPECT_EQ(stubs("src -- -DHALF").code, 1);
    const Outcome shown = stubs("--show-command src");
    EXPECT_EQ(shown.code, 0);
    EXPECT_THAT(shown.out, AllOf(HasSubstr("# database "), ContainsRegex("-D ?HALF"), HasSubstr("a.cu")));
}

TEST_F(Cli, FactsArePrinted) {
    write("p/bad.cu", kDefect);
    const Outcome o = stubs("facts bad.cu");
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.out, AllOf(HasSubstr("bad.cu"), HasSubstr("sum"), HasSubstr("fp16")));
    EXPECT_EQ(stubs("facts gone.cu").code, 2);
    EXPECT_THAT(o.err, Not(HasSubstr("stats")));
    const Outcome with_stats = stubs("facts --stats bad.cu");
    EXPECT_EQ(with_stats.out, o.out);
    EXPECT_THAT(with_stats.err, ContainsRegex("mp-lint: stats: .* s\n"));
    EXPECT_THAT(stubs("baseline make known.json bad.cu --stats").err, HasSubstr("mp-lint: stats: "));
}

TEST_F(Cli, AWordRefusesTheOptionsOfOthers) {
    write("p/bad.cu", kDefect);
    for (const char* words :
         {"rules --select MP4", "--output json rules", "rule MP401 --fix", "rules -q",
          "facts --baseline b.json bad.cu", "facts bad.cu --output json", "--show-command facts bad.cu",
          "baseline make b.json bad.cu --fix", "baseline make b.json bad.cu --strict"}) {
        const Outcome o = lint(words);
        EXPECT_EQ(o.code, 2) << words;
        EXPECT_THAT(o.err, ContainsRegex("mp-lint: error: [a-z]+: --[a-z-]+ is not an option of this word\n"
                                         "mp-lint: hint: [a-z]+ takes "))
            << words;
        EXPECT_EQ(o.out, "") << words;
    }
    EXPECT_FALSE(fs::exists(path("p/b.json")));
    EXPECT_EQ(lint("--isolated policy list").code, 2) << "the options of policy follow it";
    EXPECT_EQ(lint("facts --cuda stubs --isolated --no-cache -j 2 --timeout 60 bad.cu").code, 0);
    EXPECT_EQ(lint("--cuda stubs --select ALL --exit-zero baseline make b.json bad.cu").code, 0);
    for (const char* words : {"rules --help", "help --fix", "facts -h"})
        EXPECT_THAT(lint(words).out, StartsWith("Usage: mp-lint")) << words;
}

TEST_F(Cli, TheCacheIsUsedAndCanBeLeftAlone) {
    write("p/bad.cu", kDefect);
    const std::string first = stubs("bad.cu").out;
    EXPECT_TRUE(fs::exists(path("xdg/mp-lint")));
    const Outcome second = stubs("--verbose bad.cu");
    EXPECT_THAT(second.out, HasSubstr(" · cached\n"));
    EXPECT_THAT(second.out, StartsWith(first.substr(0, first.find("\n\n")))) << "the same findings";
    EXPECT_THAT(stubs("--verbose --no-cache bad.cu").out, Not(HasSubstr("cached")));
    fs::remove_all(path("xdg"));
    stubs("--no-cache bad.cu");
    EXPECT_FALSE(fs::exists(path("xdg")));
}

TEST_F(Cli, ARebuiltToolDoesNotTrustTheFactsOfTheOldOne) {
    write("p/bad.cu", kDefect);
    fs::copy_file(MP_LINT, path("mine"));
    const std::string lint = "'" + path("mine") + "' --cuda stubs --verbose bad.cu";
    shell(lint);
    EXPECT_THAT(shell(lint).out, HasSubstr(" · cached\n"));
    fs::last_write_time(path("mine"), fs::last_write_time(path("mine")) + std::chrono::seconds(5));
    EXPECT_THAT(shell(lint).out, Not(HasSubstr("cached")));
}

TEST_F(Cli, ColorsFollowTheTerminalAndTheUser) {
    write("p/bad.cu", kDefect);
    EXPECT_THAT(stubs("bad.cu").out, Not(HasSubstr("\033[")));
    EXPECT_THAT(stubs("--color always bad.cu").out, HasSubstr("\033[1;31merror: "));
    EXPECT_THAT(shell("FORCE_COLOR=1 " + kLint + "--cuda stubs bad.cu").out, HasSubstr("\033["));
    EXPECT_THAT(shell("NO_COLOR=1 FORCE_COLOR=1 " + kLint + "--cuda stubs bad.cu").out,
                Not(HasSubstr("\033[")));
}

// Standard error on a terminal: everything it was sent.
std::string on_terminal(const std::string& command) {
    int parent = -1, child = -1;
    if (::openpty(&parent, &child, nullptr, nullptr, nullptr) != 0) return "no terminal";
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(child, STDERR_FILENO);
        ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
        ::_exit(127);
    }
    ::close(child);
    std::string out;
    char buffer[4096];
    for (ssize_t got; (got = ::read(parent, buffer, sizeof buffer)) > 0;)
        out.append(buffer, static_cast<std::size_t>(got));
    ::close(parent);
    ::waitpid(pid, nullptr, 0);
    return out;
}

constexpr const char* kOneLineNotebook =
    R"({"cells": [{"cell_type": "markdown", "source": ["# \u00e9"]}, {"cell_type": "code", )"
    R"("source": ["import torch\n",)"
    R"("h = torch.ones(4, dtype=torch.float16)\n", "print('\u00e9'); s = h.exp()\n",)"
    R"("t = h.exp()  # mp-lint: disable=MP102 small\n"]}, {"cell_type": "code", "source": ["y = h.half()\n",)"
    R"("g = torch.cuda.amp.GradScaler()\n"]}], "metadata": {}, "nbformat": 4})";

TEST_F(Cli, APlaceInANotebookIsNamedByItsCell) {
    write("p/one.ipynb", kOneLineNotebook);
    const Outcome o = lint("one.ipynb");
    EXPECT_THAT(o.out, HasSubstr("    1 | print('é'); s = h.exp()\n"
                                 "      |                 ^~~~~~~\n"
                                 "      = in cell 2, line 3\n"));
    EXPECT_THAT(o.out, Not(HasSubstr("cell 2, line 4"))) << "this line is suppressed";
    EXPECT_THAT(o.out, HasSubstr(" · 1 suppressed"));
    const json report = json::parse(lint("--output json one.ipynb").out);
    EXPECT_EQ(report["findings"][0]["cell"], (json{{"number", 2}, {"line", 3}}));
}

TEST_F(Cli, FixSaysWhyItLeavesNotebooksAlone) {
    write("p/one.ipynb", kOneLineNotebook);
    const Outcome o = lint("--fix one.ipynb");
    EXPECT_THAT(o.err, HasSubstr("notebooks are not edited, because their code is text inside JSON"));
    EXPECT_EQ(content_of(path("p/one.ipynb")), kOneLineNotebook);
}

TEST_F(Cli, StrictReadsFilesThatNeverNameALibrary) {
    write("p/broken.py", "def f(:\n    pass\n");
    write("p/fine.py", "def f():\n    pass\n");
    for (int run = 0; run < 2; ++run) {  // the second one from the cache
        EXPECT_EQ(lint("broken.py").code, 0);
        EXPECT_EQ(lint("--strict broken.py").code, 2);
        EXPECT_EQ(lint("--strict fine.py").code, 0);
    }
}

TEST_F(Cli, AVersionOfTorchThatIsNotKnownYetIsSaid) {
    write("p/a.py", "import torch\n");
    EXPECT_THAT(
        lint("--torch 9.9 a.py").err,
        ContainsRegex("torch 9.9: the newest autocast lists known are those of 2.[0-9]+, and they are used"));
    EXPECT_THAT(lint("--torch 2.5 a.py").err, IsEmpty());
}

TEST_F(Cli, WithoutAPathItSaysWhatItAnalyses) {
    write("p/a.py", "import torch\n");
    const Outcome o = lint("");
    EXPECT_THAT(o.err, HasSubstr("no path is given: everything below " + path("p") + " was analysed"));
    EXPECT_THAT(lint("--quiet").err, IsEmpty());
    EXPECT_THAT(lint(".").err, IsEmpty());
}

TEST_F(Cli, ACarriageReturnEndsALine) {
    write("p/mac.py",
          "# of an old Mac\rimport torch\rh = torch.ones(4, dtype=torch.float16)\rs = h.exp().sum()\r");
    EXPECT_THAT(lint("--strict mac.py").out, StartsWith("mac.py:4:5: warning: "));
    EXPECT_THAT(lint("mac.py").out, HasSubstr("    4 | s = h.exp().sum()\n"));
}

TEST_F(Cli, ProgressIsForTerminalsAndGoesAway) {
    write("p/a.cpp", kClean);
    write("p/b.cpp", kClean);
    ::setenv("TERM", "xterm", 1);
    const std::string seen = on_terminal("cd '" + path("p") + "' && " + kLint + "a.cpp b.cpp >/dev/null");
    EXPECT_THAT(seen, HasSubstr("[1/2] "));
    EXPECT_THAT(seen, EndsWith("\r\033[K")) << "the last thing written erases the line";
    EXPECT_THAT(lint("a.cpp b.cpp").err, IsEmpty());
}

}  // namespace
}  // namespace mp::lint
