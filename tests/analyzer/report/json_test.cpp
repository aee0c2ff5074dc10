#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/analyzer/report/sample.hpp"

namespace mp::lint {
namespace {

using nlohmann::json;

TEST(JsonReport, HasTheDocumentedShape) {
    Report r = sample::report();
    r.suppressed = {r.findings[0]};
    r.warnings = {"careful"};
    const json j = json::parse(json_report(r));
    EXPECT_EQ(j["version"], 1);
    EXPECT_EQ(j["tool"]["name"], "mp-lint");
    EXPECT_EQ(j["summary"]["errors"], 1);
    EXPECT_EQ(j["summary"]["suppressed"], 1);
    EXPECT_EQ(j["warnings"][0], "careful");
    const json& f = j["findings"][0];
    EXPECT_EQ(f["rule"], "MP405");
    EXPECT_EQ(f["name"], "half-norm-stats");
    EXPECT_EQ(f["severity"], "error");
    EXPECT_EQ(f["file"], "norm.cu");
    EXPECT_EQ(f["line"], 2);
    EXPECT_EQ(f["column"], 20);
    EXPECT_EQ(f["end_column"], 26);
    EXPECT_EQ(f["function"], "layer_norm<__half>");
    EXPECT_EQ(f["notes"][0]["file"], "model.cu");
    EXPECT_EQ(f["fingerprint"].get<std::string>().size(), 32u);
    EXPECT_EQ(j["units"][0]["state"], "ok");
    EXPECT_EQ(j["units"][0]["coverage"]["functions"], 3);
}

TEST(JsonReport, EditsAndBaselineAreThereWhenThereAreAny) {
    Report r = sample::report();
    json j = json::parse(json_report(r));
    EXPECT_FALSE(j["findings"][0].contains("edits"));
    EXPECT_FALSE(j.contains("baselined"));
    r.findings[0].edits = {{sample::span("/p/norm.cu", 2, 20, 26), "rsqrtf"}};
    r.findings[0].safe_edits = true;
    r.used_baseline = true;
    j = json::parse(json_report(r));
    const json& edit = j["findings"][0]["edits"][0];
    EXPECT_EQ(edit["file"], "norm.cu");
    EXPECT_EQ(edit["column"], 20);
    EXPECT_EQ(edit["end_column"], 26);
    EXPECT_EQ(edit["text"], "rsqrtf");
    EXPECT_EQ(j["findings"][0]["safe_edits"], true);
    EXPECT_EQ(j["baselined"], json::array());
}

TEST(JsonReport, InvalidUtf8IsReplacedAndNotFatal) {
    Report r = sample::report();
    r.findings[0].message = "bad \xff\xfe";
    r.findings[0].span.file = Symbol("/p/\xff.cu");
    EXPECT_TRUE(json::accept(json_report(r)));
}

}  // namespace
}  // namespace mp::lint
