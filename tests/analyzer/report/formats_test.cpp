// The formats of CI systems: their requirements, and that hostile names stay text in each.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "analyzer/report/entries.hpp"
#include "tests/analyzer/report/sample.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Names and messages as an attacker would choose them, one finding of each severity.
Report hostile() {
    Report r = sample::report();
    const char* file = "/p/::error file=x::\n,a%<b>&\"'\x1b|`@all`\xff\xef\xbf\xbe.cu";
    r.sources.add(file, "int a;\n    ##[error]half ::stop x\nint b;\n");
    r.findings = {sample::finding(sample::span(file, 2, 5, 9)),
                  sample::finding(sample::span(file, 2, 5, 9), Severity::warning),
                  sample::finding(sample::span(file, 2, 5, 9), Severity::note)};
    for (Finding& f : r.findings) f.message = "a | b <script>\r\n::error::x ]]> @org/team";
    UnitResult lost;
    lost.path = file;
    lost.state = UnitState::crashed;
    lost.message = "killed by <signal> 11";
    r.units.push_back(lost);
    return r;
}

Report many(std::size_t n) {
    Report r = sample::report();
    r.findings.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
        const Severity severity = i % 3 == 0 ? Severity::error : Severity::warning;
        r.findings.push_back(sample::finding(sample::span("/p/norm.cu", 2, 20, 26), severity));
    }
    return r;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& start) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(start)) out.push_back(line);
    }
    return out;
}

TEST(GithubReport, AnAnnotationPerFindingAfterTheText) {
    const std::string out = github_report(sample::report());
    EXPECT_THAT(out, HasSubstr("\nnorm.cu:2:20: error: variance is held in fp16 [MP405 "));
    EXPECT_THAT(out, EndsWith("\n::error file=norm.cu,line=2,col=20,endColumn=26,title=MP405 "
                              "half-norm-stats::variance is held in fp16. Fix: keep it in float\n"));
}

TEST(GithubReport, TenOfALevelAndTheRestIsSaid) {
    const std::string out = github_report(many(60));
    EXPECT_EQ(lines_with(out, "::error ").size(), 10u);
    EXPECT_EQ(lines_with(out, "::warning ").size(), 10u);
    EXPECT_THAT(out, EndsWith("\n40 findings without annotation: see the text above\n"));
    EXPECT_EQ(lines_with(out, "norm.cu:2:20: ").size(), 60u) << "all stand in the text";
}

TEST(GithubReport, TextCannotBecomeACommand) {
    const std::string out = github_report(hostile());
    const std::string stop = lines_with(out, "::stop-commands::").at(0);
    const std::string word = stop.substr(17);
    EXPECT_THAT(out, StartsWith(stop));
    const std::size_t resumed = out.find("\n::" + word + "::\n");
    ASSERT_NE(resumed, std::string::npos);
    EXPECT_LT(out.find("##[error]"), resumed);
    EXPECT_EQ(out.find("##[error]", resumed), std::string::npos);
    const std::string after = out.substr(resumed + 1);
    EXPECT_EQ(lines_with(after, "::").size(), 4u) << "the word, and three annotations\n" << after;
    EXPECT_THAT(after, HasSubstr("file=%3A%3Aerror file=x%3A%3A%0A%2Ca%25<b>"));
    EXPECT_THAT(after, HasSubstr("::a | b <script>%0D%0A::error::x ]]>"));
}

// The fields that GitLab requires (its documentation, "Code Quality report format").
TEST(GitlabReport, EveryIssueHasWhatGitlabRequires) {
    for (const Report& r : {sample::report(), hostile(), many(50)}) {
        const json out = json::parse(gitlab_report(r));
        ASSERT_TRUE(out.is_array());
        ASSERT_EQ(out.size(), r.findings.size());
        std::set<std::string> fingerprints;
        for (const json& issue : out) {
            EXPECT_FALSE(issue.at("description").get<std::string>().empty());
            EXPECT_THAT(issue.at("check_name").get<std::string>(), StartsWith("MP405"));
            EXPECT_TRUE(fingerprints.insert(issue.at("fingerprint")).second);
            EXPECT_THAT((std::set<std::string>{"info", "minor", "major", "critical", "blocker"}),
                        testing::Contains(issue.at("severity").get<std::string>()));
            EXPECT_THAT(issue.at("location").at("path").get<std::string>(), Not(StartsWith("./")));
            EXPECT_GE(issue.at("location").at("lines").at("begin").get<int>(), 1);
        }
    }
    EXPECT_EQ(json::parse(gitlab_report(many(0))), json::array());
    EXPECT_EQ(json::parse(gitlab_report(sample::report()))[0]["severity"], "critical");
}

void check_position(const json& position) {
    EXPECT_GE(position.at("line").get<int>(), 1);
    for (const auto& [key, value] : position.items()) {
        EXPECT_TRUE(key == "line" || key == "column") << key;
        EXPECT_GE(value.get<int>(), 1);
    }
}

// Checks by hand the requirements of reviewdog's schema (proto/rdf, DiagnosticResult): names, kinds,
// enumerators.
void check_diagnostic(const json& d) {
    static const std::set<std::string> kFields{"message", "location",    "severity",
                                               "code",    "suggestions", "related_locations"};
    for (const auto& [key, value] : d.items()) EXPECT_TRUE(kFields.contains(key)) << key;
    EXPECT_TRUE(d.at("message").is_string());
    EXPECT_TRUE(d.at("location").at("path").is_string());
    EXPECT_THAT((std::set<std::string>{"ERROR", "WARNING", "INFO"}),
                testing::Contains(d.at("severity").get<std::string>()));
    EXPECT_TRUE(d.at("code").at("value").is_string());
    const json& range = d.at("location").at("range");
    check_position(range.at("start"));
    if (range.contains("end")) check_position(range.at("end"));
    for (const json& s : d.value("suggestions", json::array())) {
        check_position(s.at("range").at("start"));
        check_position(s.at("range").at("end"));
        EXPECT_TRUE(s.at("text").is_string());
    }
    for (const json& r : d.value("related_locations", json::array())) {
        EXPECT_TRUE(r.at("message").is_string());
        EXPECT_TRUE(r.at("location").at("path").is_string());
    }
}

TEST(RdjsonReport, EveryDiagnosticIsWhatReviewdogReads) {
    Report edited = sample::report();
    edited.findings[0].edits = {{sample::span("/p/norm.cu", 2, 20, 26), "rsqrtf"}};
    for (const Report& r : {sample::report(), hostile(), edited}) {
        const json out = json::parse(rdjson_report(r));
        EXPECT_EQ(out.at("source").at("name"), "mp-lint");
        ASSERT_EQ(out.at("diagnostics").size(), r.findings.size());
        for (const json& d : out["diagnostics"]) check_diagnostic(d);
    }
    const json first = json::parse(rdjson_report(edited))["diagnostics"][0];
    EXPECT_EQ(first["suggestions"][0]["text"], "rsqrtf");
    EXPECT_EQ(first["suggestions"][0]["range"]["end"]["column"], 26);
    edited.findings[0].edits.push_back({sample::span("/p/norm.cu", 1, 1, 1), "x"});
    EXPECT_FALSE(json::parse(rdjson_report(edited))["diagnostics"][0].contains("suggestions"))
        << "two edits that only work together cannot be one suggestion";
}

// What Python's parser reads: counts are those of the elements, at both levels.
constexpr const char* kCheckJunit = R"(
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites", root.tag
totals = dict(tests=0, failures=0, errors=0, skipped=0)
for suite in root:
    cases = suite.findall("testcase")
    assert suite.tag == "testsuite" and suite.get("name") and cases
    counted = dict(tests=len(cases), failures=len(suite.findall("*/failure")),
                   errors=len(suite.findall("*/error")), skipped=len(suite.findall("*/skipped")))
    for key, value in counted.items():
        assert int(suite.get(key)) == value, (key, suite.attrib)
        totals[key] += value
    assert all(case.get("name") and case.get("classname") for case in cases)
for key, value in totals.items():
    assert int(root.get(key)) == value, (key, root.attrib)
assert [totals[k] for k in ("tests", "failures", "errors", "skipped")] == EXPECTED, totals
)";

// Exit status of the check; `expected` is tests, failures, errors, skipped.
int checked(const std::string& junit, const std::string& expected) {
    const fs::path folder = fs::temp_directory_path() / ("mp-junit-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::string script = kCheckJunit;
    script.replace(script.find("EXPECTED"), 8, expected);
    std::ofstream(folder / "check.py") << script;
    std::ofstream(folder / "junit.xml") << junit;
    const int status = std::system(("/usr/bin/python3 '" + (folder / "check.py").string() + "' '" +
                                    (folder / "junit.xml").string() + "' 2>/dev/null")
                                       .c_str());
    fs::remove_all(folder);
    return status;
}

TEST(JunitReport, ErrorsAndWarningsFailNotesAndKnownOnesDoNot) {
    EXPECT_EQ(checked(junit_report(sample::report()), "[1, 1, 0, 0]"), 0);
    EXPECT_NE(checked(junit_report(sample::report()), "[1, 0, 0, 0]"), 0) << "the check can fail";
    EXPECT_EQ(checked(junit_report(hostile()), "[4, 2, 1, 0]"), 0);
    EXPECT_EQ(checked(junit_report(many(0)), "[1, 0, 0, 0]"), 0) << "a clean run is a passed case";
    Report known = sample::report();
    known.suppressed = known.findings;
    known.baselined.swap(known.findings);
    EXPECT_EQ(checked(junit_report(known), "[2, 0, 0, 2]"), 0);
}

TEST(MarkdownReport, ATableWorstFirst) {
    const std::string out = markdown_report(many(2));
    EXPECT_THAT(out, StartsWith("### mp-lint: 1 error, 1 warning\n\n| | rule |"));
    EXPECT_LT(out.find("| error |"), out.find("| warning |"));
    EXPECT_THAT(markdown_report(many(0)), StartsWith("### mp-lint: no findings\n\n2 files"));
}

TEST(MarkdownReport, NothingBecomesMarkup) {
    const std::string out = markdown_report(hostile());
    EXPECT_THAT(out, Not(HasSubstr("<script>")));
    EXPECT_THAT(out, Not(HasSubstr("@org")));
    EXPECT_THAT(out, HasSubstr("a \\| b &lt;script&gt;"));
    EXPECT_EQ(lines_with(out, "| ").size(), 4u) << "header and three rows, whatever the message";
}

TEST(MarkdownReport, StaysBelowTheLimitOfAStepSummary) {
    Report r = many(20000);
    r.findings.front().message = std::string(3 << 20, 'x');
    const std::string out = markdown_report(r);
    EXPECT_LT(out.size(), std::size_t{900} << 10);
    EXPECT_THAT(out, HasSubstr(" more, not listed here\n"));
}

}  // namespace
}  // namespace mp::lint
