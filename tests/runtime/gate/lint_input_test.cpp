#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/gate/gate.hpp"

namespace mp::trace {
namespace {

namespace fs = std::filesystem;

class LintInput : public testing::Test {
protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    Result<std::vector<LintFinding>> read(const std::string& text) {
        const fs::path file = folder_ / "lint";
        std::ofstream(file, std::ios::binary) << text;
        return read_lint(file.string());
    }
    fs::path folder_ = fs::temp_directory_path() / ("mp-lint-input-" + std::to_string(::getpid()));
};

TEST_F(LintInput, MpLintsJson) {
    const auto found = read(R"({"version": 1, "findings": [
        {"rule": "MP401", "name": "half-accumulator", "severity": "error", "file": "src/sum.cu", "line": 12,
         "message": "m"},
        17, {"rule": "MP402", "line": "x"}], "suppressed": [{"rule": "MP403"}]})");
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 2u);
    EXPECT_EQ((*found)[0].rule, "MP401");
    EXPECT_EQ((*found)[0].level, "error");
    EXPECT_EQ((*found)[0].file, "src/sum.cu");
    EXPECT_EQ((*found)[0].line, 12);
    EXPECT_EQ((*found)[1].line, 0);
}

TEST_F(LintInput, Sarif) {
    const auto found = read(R"({"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "mp-lint", "rules": [{"id": "MP401", "name": "half-accumulator"}]}},
        "results": [
          {"ruleId": "MP401", "level": "error", "message": {"text": "m"}, "locations": [{"physicalLocation":
            {"artifactLocation": {"uri": "file:///a%20b/sum.cu"}, "region": {"startLine": 12}}}]},
          {"ruleId": "MP401", "message": {"text": "m"}},
          {"ruleId": "MP401", "suppressions": [{"kind": "inSource"}]}]}]})");
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 2u) << "what is suppressed stays so";
    EXPECT_EQ((*found)[0].file, "/a b/sum.cu");
    EXPECT_EQ((*found)[0].name, "half-accumulator");
    EXPECT_EQ((*found)[0].line, 12);
    EXPECT_EQ((*found)[1].level, "warning");
}

TEST_F(LintInput, WhatIsNoneOfTheseIsAnError) {
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("[]"), std::string("17"), std::string("{}"),
          std::string("{\"findings\": 1}"), std::string(100'000, '['),
          "{\"findings\": [" + std::string(70, '[') + std::string(70, ']') + "]}",
          "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}",
          std::string("{\"findings\": [\"\xff\"]}"), std::string("\xff\xfe{}")})
        EXPECT_FALSE(read(text)) << text.substr(0, 40);
    EXPECT_FALSE(read_lint(folder_.string()));
    EXPECT_FALSE(read_lint("/dev/zero"));
    EXPECT_FALSE(read_lint((folder_ / "none").string()));
}

TEST_F(LintInput, TheHintNamesAnOptionThatMpLintHas) {
    EXPECT_EQ(read("{}").error().hint, "mp-lint --output json or --output sarif writes such a file");
}

TEST_F(LintInput, WrongTypesInsideAreNoCrash) {
    for (const char* text :
         {R"({"runs": [1, null, {"results": 1}, {"results": [1, {"message": 1, "locations": {}}]}]})",
          R"({"runs": [{"tool": [], "results": [{"locations": [1]}]}]})",
          R"({"runs": [{"results": [{"locations": [{"physicalLocation": 1}], "level": 7}]}]})",
          R"({"findings": [{"line": -5}, {"line": 1e300}, {"line": 99999999999}, null, []]})"}) {
        const auto found = read(text);
        ASSERT_TRUE(found) << text;
        for (const LintFinding& f : *found) EXPECT_EQ(f.line, 0);
    }
}

}  // namespace
}  // namespace mp::trace
