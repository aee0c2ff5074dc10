#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/doctor/sections.hpp"
#include "tests/runtime/launch/doctor/scratch.hpp"

namespace mp::launch::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Units of this program, which the tests copy.
constexpr const char* kUnit = "source_test.cpp";
constexpr const char* kOtherUnit = "tf32_test.cpp";

constexpr const char* kReport = R"({"units": [{"path": "train.cu", "state": "ok", "message": ""},
    {"path": "other.cu", "state": "partial", "message": "other.cu:1:1: expected a name"}],
    "findings": [{"rule": "MP412", "name": "collective-count-in-bytes", "severity": "error", "file": "zero.cuh",
                  "line": 4, "column": 7, "message": "takes its count in elements", "fix": "pass the number"},
                 {"rule": "MP214", "name": "nan-passes-clip", "severity": "note", "file": "test.cu", "line": 1,
                  "column": 1, "message": "in a test", "fix": ""}]})";

class Sources : public Scratch {
protected:
    // An mp-lint that writes what it was asked, one word a line, and answers with `report`.
    std::string lint(const std::string& report, const std::string& end = "exit 1") const {
        return program("mp-lint", "printf '%s\n' \"$@\" > " + directory_ + "/asked\ncat <<'END'\n" + report +
                                      "\nEND\n" + end + "\n");
    }
    std::vector<std::string> asked() const {
        std::ifstream in(directory_ + "/asked");
        std::vector<std::string> words;
        for (std::string word; std::getline(in, word);) words.push_back(word);
        return words;
    }
    // A program of the unit kUnit.
    std::string with_unit(const std::string& name) const {
        const std::string path = file(name, "");
        std::filesystem::copy_file("/proc/self/exe", path, std::filesystem::copy_options::overwrite_existing);
        return path;
    }
    std::string database(const std::string& folder, const std::vector<std::string>& files) const {
        std::string text;
        for (const std::string& name : files)
            text += std::string(text.empty() ? "[" : ", ") + R"({"directory": ")" + directory_ +
                    R"(", "command": "nvcc -c x", "file": ")" + name + "\"}";
        return file(folder + "compile_commands.json", text + "]");
    }
};

Line line_of(const SourceFacts& facts, std::string_view key) {
    const Section section = source_section(facts);
    const auto at = std::ranges::find(section.lines, key, &Line::key);
    return at == section.lines.end() ? Line{} : *at;
}

TEST_F(Sources, UnitsOfTheProgramAreReadWithTheFlagsOfTheDatabaseAboveIt) {
    const std::string source = file(std::string("src/") + kUnit, "");
    file("src/another.cu", "");
    const std::string commands = database("", {std::string("src/") + kUnit, "src/another.cu", "src/gone.cu"});
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"), .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(source));
    EXPECT_EQ(facts.database, commands);
    EXPECT_THAT(asked(), testing::IsSupersetOf({std::string("-p"), commands, source, std::string("json")}));
    EXPECT_EQ(facts.fault, "");
    ASSERT_EQ(facts.findings.size(), 1u) << "a note is not shown";
    EXPECT_EQ(facts.findings[0].place, "zero.cuh:4:7");
    EXPECT_EQ(line_of(facts, "MP412 collective-count-in-bytes").hint, "pass the number");
    EXPECT_THAT(line_of(facts, "not read wholly").value, HasSubstr("other.cu:1:1"));
    EXPECT_EQ(line_of(facts, "read by mp-lint").verdict, Verdict::ok);
    EXPECT_EQ(line_of(facts, "findings").key, "");
}

TEST_F(Sources, ADatabaseOfAnotherProgramIsNotUsed) {
    const std::string source = file(std::string("bin/") + kUnit, "");
    file("src/another.cu", "");
    database("", {"src/another.cu"});
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"), .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(source));
    EXPECT_EQ(facts.database, "");
    EXPECT_THAT(line_of(facts, "read by mp-lint").value, HasSubstr("without the flags"));
}

TEST_F(Sources, ANameOfSeveralFilesIsOfNone) {
    file(std::string("a/") + kUnit, "");
    file(std::string("b/") + kUnit, "");
    database("", {std::string("a/") + kUnit, std::string("b/") + kUnit});
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"), .lint = lint(kReport)});
    EXPECT_THAT(facts.files, IsEmpty());
    EXPECT_THAT(line_of(facts, "not read").value, HasSubstr(kUnit));
    EXPECT_THAT(asked(), IsEmpty());
    EXPECT_EQ(line_of(facts, "sources").key, "");
}

TEST_F(Sources, OfSeveralFilesTheOneWhoseObjectIsTheProgramsIsItsUnit) {
    const std::string source = file(std::string("a/") + kUnit, "");
    file(std::string("b/") + kUnit, "");
    const auto entry = [this](const std::string& folder, const std::string& target) {
        return R"({"directory": ")" + directory_ + R"(", "file": ")" + folder + kUnit +
               R"(", "command": "clang++ -o )" + folder + "CMakeFiles/" + target + R"(.dir/x.o"})";
    };
    file("compile_commands.json", "[" + entry("a/", "train") + "," + entry("b/", "evaluate") + "]");
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"), .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(source));
    EXPECT_THAT(facts.ambiguous, IsEmpty());
}

TEST_F(Sources, AUnitThatTheDatabaseLacksIsReadBesideTheOthers) {
    const std::string source = file(std::string("src/") + kUnit, "");
    const std::string custom = file(std::string("src/") + kOtherUnit, "");
    database("", {std::string("src/") + kUnit});
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"), .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(source, custom));
    EXPECT_THAT(facts.missing, testing::Not(testing::Contains(kOtherUnit)));
    EXPECT_THAT(facts.missing, testing::Contains("doctor_test.cpp"));
}

TEST_F(Sources, AUnitThatNoFileHasIsTold) {
    SourceFacts facts;
    facts.lint = "mp-lint";
    facts.files = {"src/main.cpp"};
    facts.database = "compile_commands.json";
    EXPECT_THAT(line_of(facts, "findings").value, testing::StartsWith("none about"));
    facts.missing = {"train.cu"};
    EXPECT_THAT(line_of(facts, "not read").value, HasSubstr("train.cu"));
    EXPECT_THAT(line_of(facts, "findings").value, testing::StartsWith("none in what was read"));
}

TEST_F(Sources, FlagsOfTheUserComeBeforeADatabase) {
    const std::string source = file(std::string("src/deep/") + kUnit, "");
    database("", {std::string("src/deep/") + kUnit});
    const SourceFacts facts = probe_sources({.program = with_unit("bin/train"),
                                             .folder = directory_ + "/src",
                                             .flags = {"-DMULTI_GPU"},
                                             .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(source));
    const std::vector<std::string> words = asked();
    EXPECT_THAT(words, testing::Not(testing::Contains("-p")));
    ASSERT_GE(words.size(), 2u);
    EXPECT_EQ(words[words.size() - 2], "--");
    EXPECT_EQ(words.back(), "-DMULTI_GPU");
}

TEST_F(Sources, AMakefilesProgramHasItsSourceBesideIt) {
    const std::string source = file("train_gpt2.cu", "");
    for (const char* const name : {"train_gpt2cu", "train_gpt2", "train_gpt2.out"}) {
        const SourceFacts facts = probe_sources({.program = file(name, "no program"), .lint = lint(kReport)});
        EXPECT_THAT(facts.files, ElementsAre(source)) << name;
    }
    const SourceFacts other = probe_sources({.program = file("other", "no program"), .lint = lint(kReport)});
    EXPECT_THAT(other.files, IsEmpty());
    EXPECT_THAT(line_of(other, "sources").value, HasSubstr("stripped"));
    EXPECT_THAT(line_of(other, "sources").hint, HasSubstr("--sources"));
}

TEST_F(Sources, AFolderAloneIsReadWhole) {
    const SourceFacts facts = probe_sources({.folder = directory_, .lint = lint(kReport)});
    EXPECT_THAT(facts.files, ElementsAre(directory_));
}

TEST_F(Sources, WithoutMpLintTheyAreNamedAndNotRead) {
    const SourceFacts facts = probe_sources({.folder = directory_, .lint = directory_ + "/mp-lint"});
    EXPECT_EQ(facts.lint, "");
    EXPECT_THAT(line_of(facts, "not read").value, HasSubstr("no mp-lint beside mp-trace"));
    EXPECT_THAT(line_of(facts, "not read").hint, HasSubstr("install"));
}

TEST_F(Sources, AnMpLintThatHangsCrashesOrAnswersOtherwiseIsAFault) {
    const auto fault = [this](const std::string& report, const std::string& end, int milliseconds) {
        const SourceFacts facts =
            probe_sources({.folder = directory_, .lint = lint(report, end), .milliseconds = milliseconds});
        EXPECT_THAT(facts.findings, IsEmpty());
        EXPECT_EQ(line_of(facts, "not read").verdict, Verdict::warn);
        EXPECT_THAT(line_of(facts, "not read").hint, HasSubstr("/mp-lint " + directory_));
        return facts.fault;
    };
    constexpr int kAMinute = 60'000;
    EXPECT_THAT(fault(kReport, "sleep 100", 300), HasSubstr("did not answer"));
    EXPECT_THAT(fault(kReport, "kill -SEGV $$", kAMinute), HasSubstr("signal 11"));
    EXPECT_THAT(fault("", "echo 'mp-lint: error: no such file' >&2; exit 2", kAMinute),
                HasSubstr("no such file"));
    EXPECT_NE(fault("not json", "exit 0", kAMinute), "");
    EXPECT_NE(fault(R"({"findings": []})", "exit 0", kAMinute), "") << "no unit is no report";
}

TEST_F(Sources, ManyFindingsAreCounted) {
    SourceFacts facts{.lint = "mp-lint", .files = {"train.cu"}, .flags = {"-DX"}};
    facts.findings.resize(23);
    EXPECT_EQ(line_of(facts, "more").value, "3 findings");
    facts.findings.clear();
    EXPECT_EQ(line_of(facts, "more").key, "");
    EXPECT_EQ(line_of(facts, "findings").verdict, Verdict::ok);
}

}  // namespace
}  // namespace mp::launch::doctor
