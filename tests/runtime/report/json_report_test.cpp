#include "runtime/report/json_report.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/report/sample_run.hpp"
#include "tests/runtime/trace/golden.hpp"

namespace mp::trace {
namespace {

using nlohmann::json;
using test::expect_golden;
using test::sample_run;
using testing::HasSubstr;
using testing::Not;

// Without the coverage's fields, which follow the list of the record: a new one changes one golden file, the dump's.
TEST(JsonReport, OfASmallRunIsTheGoldenOne) {
    nlohmann::ordered_json report = json_report(test::sample_model(), {});
    nlohmann::ordered_json& coverage = report["coverage"];
    fields(
        [&](const Field& f, auto) {
            EXPECT_EQ(coverage.erase(f.name), 1u) << f.name;
            for (nlohmann::ordered_json& rank : coverage["ranks"])
                EXPECT_EQ(rank.erase(f.name), 1u) << f.name;
        },
        Of<Coverage>{});
    expect_golden(json_text(report), "report.json");
}

TEST(JsonReport, CoverageHasEveryFieldOfItsRecord) {
    const RunModel model = test::sample_model();
    const json coverage = json::parse(json_text(json_report(model, {})))["coverage"];
    fields(
        [&](const Field& f, auto member) { EXPECT_EQ(coverage[f.name], model.coverage.*member) << f.name; },
        Of<Coverage>{});
    EXPECT_EQ(coverage["ranks"][0]["drawn"], 24);
}

TEST(JsonReport, StepsHaveTheRanksSideBySideWithExactLosses) {
    const json report = json::parse(json_text(json_report(test::sample_model(), {})));
    EXPECT_EQ(report["version"], kJsonReportVersion);
    ASSERT_EQ(report["steps"].size(), 3u);
    const json& entry = report["steps"][0]["ranks"][1];
    EXPECT_EQ(entry["rank"], 1);
    EXPECT_EQ(entry["losses"][0]["loss"], 2.5);
    EXPECT_EQ(entry["losses"][0]["loss_hex"], "0x1.4p+1");
    EXPECT_EQ(std::strtod(entry["losses"][0]["twin_loss_hex"].get<std::string>().c_str(), nullptr), 2.501);
    EXPECT_EQ(entry["loss_scale"], 65536.0);
    EXPECT_EQ(report["steps"][1]["ranks"][0]["skipped"], true);
    EXPECT_EQ(report["steps"][0]["ranks"][0]["seeds"], 5);
}

TEST(JsonReport, WhatJsonCannotHoldIsNullWithItsName) {
    const json report = json::parse(json_text(json_report(test::sample_model(), {})));
    const json& nan = report["steps"][2]["ranks"][1];
    EXPECT_TRUE(nan["loss"].is_null());
    EXPECT_EQ(nan["loss_hex"], "nan");
    const json& infinite = report["steps"][0]["ranks"][0]["losses"][1];
    EXPECT_TRUE(infinite["loss"].is_null());
    EXPECT_EQ(infinite["loss_hex"], "inf");
    EXPECT_TRUE(infinite["twin_loss"].is_null() && infinite["twin_loss_hex"].is_null()) << "there is none";
    bool seen = false;
    for (const json& p : report["parameters"]) {
        if (p["rank"] != 1 || p["name"] != "blocks.0.attention.query.weight") continue;
        seen = true;
        EXPECT_TRUE(p["relative_l2"].is_null());
        EXPECT_EQ(p["relative_l2_hex"], "inf");
        EXPECT_EQ(p["worst_step"], 2);
        EXPECT_GT(p["gradient_relative_l2"], 0.0);
    }
    EXPECT_TRUE(seen);
}

TEST(JsonReport, MissingRanksProblemsAndNotesAreListed) {
    const json report = json::parse(json_text(json_report(test::sample_model(), {})));
    EXPECT_EQ(report["run"]["ranks_missing"], json::array({2}));
    EXPECT_EQ(report["problems"].size(), 2u);
    EXPECT_EQ(report["coverage"]["not_observed"][0]["count"], 20) << "9 of one process and 11 of the other";
    EXPECT_EQ(report["coverage"]["seeds_after_step_0"], 0);
    EXPECT_EQ(report["run"]["processes"][1]["lossy"], true);
    EXPECT_EQ(report["collectives"][0]["calls"], 18);
}

TEST(JsonReport, AnEmptyRunHasAllSections) {
    const json report = json::parse(json_text(json_report({}, {})));
    for (const char* key :
         {"version", "run", "steps", "coverage", "dtypes", "collectives", "parameters", "problems"})
        EXPECT_TRUE(report.contains(key)) << key;
    EXPECT_TRUE(report["coverage"]["ops_fraction"].is_null());
}

TEST(JsonReport, HostileValuesMakeValidAscii) {
    mp::trace::Run run = sample_run();
    const double bad[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::denorm_min()};
    for (Recording& r : run.recordings) {
        r.process.host = r.process.program = "\xff\xfe</script>\x1b[2J\"\\";
        r.steps[0].step = Step{std::numeric_limits<std::int64_t>::min()};
        for (const double v : bad) {
            r.steps[1].losses.push_back({.real = v, .twin = v, .has_twin = true});
            r.steps[1].loss_scale = r.steps[1].coverage.worst_leak = v;
            TensorRecord t = r.steps[1].tensors[0];
            t.name = "a\xc3(" + std::to_string(v);
            t.error_squares = v;
            r.steps[1].tensors.push_back(t);
        }
        r.notes[0].text = std::string("\0\xed\xa0\x80", 4);
    }
    const std::string text = json_text(json_report(fold(run, {.tables = true}), {}));
    EXPECT_TRUE(json::accept(text));
    for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
    for (const char* bare : {": nan", ": NaN", ": inf", ": -inf", ": Infinity"})
        EXPECT_THAT(text, Not(HasSubstr(bare)));
}

TEST(JsonReport, ALongRunListsEveryNthStepAndSaysSo) {
    mp::trace::Run run;
    run.recordings.resize(1);
    for (int i = 0; i < 1000; ++i) run.recordings[0].steps.push_back(test::sample_step(i, 0));
    const json report =
        json::parse(json_text(json_report(fold(run, {.tables = true}), {}, {.step_records = 100})));
    EXPECT_LE(report["steps"].size(), 100u);
    EXPECT_GT(report["steps"].size(), 50u);
    EXPECT_EQ(report["steps"][1]["step"], report["steps_every"]);
    EXPECT_EQ(report["coverage"]["ops"], 1'000'000) << "sums are over all steps";
    EXPECT_EQ(json::parse(json_text(json_report(fold(run, {.tables = true}), {})))["steps_every"], 1);
}

}  // namespace
}  // namespace mp::trace
