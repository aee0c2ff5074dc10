#include "runtime/report/sections.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "kernels/numerics/divergence.hpp"
#include "runtime/judge/judge.hpp"
#include "runtime/report/json_report.hpp"
#include "tests/fakes/source_dir.hpp"
#include "tests/runtime/report/sample_models.hpp"
#include "tests/runtime/report/sample_run.hpp"

namespace mp::trace {
namespace {

using nlohmann::json;

json report_of(const test::Judged& run) {
    return json::parse(json_text(json_report(run.model, run.judgement)));
}

Finding finding(Severity severity) {
    Finding f;
    f.severity = severity;
    return f;
}

TEST(Sections, ALayerHasTheExponentsOfItsResults) {
    const test::Judged run = test::overflow_run();
    const json layers = report_of(run)["layers"];
    bool seen = false;
    for (const json& layer : layers) {
        if (layer["exponents"].empty()) continue;
        seen = true;
        const json& e = layer["exponents"][0];
        EXPECT_EQ(e["lowest"], layer["phase"] == "backward" ? -27 : -13);
        EXPECT_EQ(e["counts"].size(), 16u);
        EXPECT_EQ(e["counts"][10], 1'000'000);
    }
    EXPECT_TRUE(seen);
}

TEST(Sections, ExponentsComeAlongDepthAndOnlyOfKnownLayers) {
    const test::Judged run = test::overflow_run();
    RunModel model = run.model;
    std::swap(model.exponents.front(), model.exponents.back());
    model.exponents.push_back(
        {.layer = "nowhere", .phase = Phase::forward, .dtype = DType::fp16, .exponents = {}});
    const auto sorted = exponents_by_depth(model);
    ASSERT_EQ(sorted.size(), run.model.exponents.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
        EXPECT_EQ(sorted[i]->layer, run.model.exponents[i].layer) << i;
}

TEST(Sections, OutcomeIsTheWorstFindingUnlessTooLittleWasSeen) {
    Judgement j;
    EXPECT_EQ(outcome_of(j), Outcome::pass);
    j.findings = {finding(Severity::note)};
    EXPECT_EQ(outcome_of(j), Outcome::pass);
    j.findings.push_back(finding(Severity::warning));
    EXPECT_EQ(outcome_of(j), Outcome::warn);
    j.inconclusive = {"ranks 2-3 left no recording"};
    EXPECT_EQ(outcome_of(j), Outcome::inconclusive);
    j.findings.push_back(finding(Severity::error));
    EXPECT_EQ(outcome_of(j), Outcome::fail);
}

TEST(Sections, TheHeadlineSaysWhere) {
    test::Judged run = test::overflow_run();
    EXPECT_EQ(headline_of(run.model, run.judgement), run.judgement.findings[0].message)
        << "which names the layer";
    run.judgement.findings[0].message = "addmm gave 3 values that are not finite";
    EXPECT_EQ(headline_of(run.model, run.judgement),
              "blocks.2.mlp.up: addmm gave 3 values that are not finite");
}

// An fp32 op after bf16 ops has inherited about 100,000 of its own floors, but does not cause the error.
TEST(Sections, FloorsOfFp32DoNotCountForALayer) {
    RunModel model;
    OpSum op;
    op.total.layer = "(loss)";
    op.total.dtype = DType::fp32;
    op.total.compared = 1;
    op.total.error_squares = op.total.twin_squares = 1;
    model.ops = {op};
    const Json layer = layers_section(model)[0];
    EXPECT_TRUE(layer["total_phi"].is_null());
    EXPECT_GT(layer["ops"][0]["total_phi"], 1e6);
}

// docs/measures.md: PROP is relative to the twin, also where the fp32 op on the real inputs gives other values.
TEST(Sections, OfOneOpTheLadderAndTheLayerHaveTheSameFigures) {
    RunModel model;
    OpSum op;
    op.total.layer = "l";
    op.total.dtype = DType::bf16;
    op.total.compared = op.total.loc_compared = 100;
    op.total.twin_squares = 100;
    op.total.loc_squares = 400;
    op.total.error_squares = 5;
    op.total.loc_error_squares = 2;
    op.total.prop_error_squares = 4;
    model.ops = {op};
    const auto check = [&](double inherited) {
        const Json layer = layers_section(model)[0], rung = ladder_section(judge(model))[0];
        EXPECT_NEAR(layer["inherited_phi"], inherited / one_rounding_floor(DType::bf16), 1e-9);
        for (const char* key : {"introduced_phi", "inherited_phi", "total_phi"}) {
            EXPECT_EQ(layer[key], rung[key]) << key;
            EXPECT_EQ(layer["ops"][0][key], rung[key]) << key;
        }
    };
    check(0.2);
    model.ops[0].total.compared = 200;  // half of them in calls without PROP
    check(0.2 * std::sqrt(2.0));
}

TEST(Sections, LayersHaveTheirOpsAndTheirErrorInFloors) {
    const json report = report_of(test::overflow_run());
    ASSERT_FALSE(report["layers"].empty());
    EXPECT_EQ(report["layers"][0]["phase"], "forward");
    bool seen = false;
    for (const json& layer : report["layers"]) {
        if (layer["layer"] != "blocks.2.ln2" || layer["phase"] != "forward") continue;
        seen = true;
        EXPECT_NEAR(layer["introduced_phi"].get<double>(), 1, 0.1);
        EXPECT_GT(layer["total_phi"], layer["introduced_phi"]);
        EXPECT_EQ(layer["dtypes"], json::array({"fp16"}));
        EXPECT_EQ(layer["ops"][0]["op"], "aten::native_layer_norm");
        EXPECT_NEAR(layer["ops"][0]["total_phi"].get<double>(), layer["total_phi"].get<double>(), 1e-12);
    }
    EXPECT_TRUE(seen);
}

TEST(Sections, WhatWasNotMeasuredIsNull) {
    test::Judged run = test::watched_run();
    for (OpSum& op : run.model.ops) op.total.compared = op.total.loc_compared = 0;
    const json report = report_of(run);
    for (const json& layer : report["layers"]) {
        EXPECT_TRUE(layer["total_phi"].is_null());
        EXPECT_TRUE(layer["ops"][0]["relative_l2"].is_null());
    }
    EXPECT_TRUE(report["first_overflow"].is_null());
    EXPECT_EQ(report["verdict"]["result"], "inconclusive");
}

TEST(Sections, LossScaleListsItsChangesOnly) {
    const json scale = report_of(test::overflow_run())["loss_scale"];
    ASSERT_EQ(scale.size(), 5u);
    EXPECT_EQ(scale[0]["loss_scale"], 65'536.0);
    EXPECT_EQ(scale[1]["step"], 18);
    EXPECT_EQ(scale[4]["loss_scale"], 4'096.0);
}

TEST(Sections, SkipsAndFindingsKeepTheirOrder) {
    const json report = report_of(test::overflow_run());
    EXPECT_EQ(report["skips"].size(), 4u);
    EXPECT_EQ(report["skips"][0]["cause"], "forward overflow");
    EXPECT_EQ(report["findings"][0]["rule"], "MPT001");
    EXPECT_TRUE(report["findings"][1]["rank"].is_null());
}

// As users' tools would: with a validator that is not ours.
TEST(Sections, EveryReportFollowsTheSchema) {
    const std::string python = std::string(mp_source_dir()) + "/.venv/bin/python3";
    if (std::system((python + " -c 'import jsonschema' 2>/dev/null").c_str()) != 0)
        GTEST_SKIP() << "no jsonschema in .venv: script/setup installs it";
    const std::string directory = testing::TempDir();
    const std::string script = directory + "validate_report.py", file = directory + "report_of_sample.json";
    std::ofstream(script)
        << "import json, sys, jsonschema\n"
           "schema = json.load(open(sys.argv[1]))\n"
           "jsonschema.Draft202012Validator.check_schema(schema)\n"
           "jsonschema.Draft202012Validator(schema).validate(json.load(open(sys.argv[2])))\n";
    const test::Judged with_tables{test::sample_model(), {}};
    for (const test::Judged& run : {test::clean_run(), test::overflow_run(), test::watched_run(),
                                    test::hostile_run(), test::Judged{}, with_tables}) {
        std::ofstream(file) << json_text(json_report(run.model, run.judgement));
        const std::string command =
            python + " " + script + " " + mp_source_dir() + "/docs/report.schema.json " + file;
        EXPECT_EQ(std::system(command.c_str()), 0) << run.model.directory;
    }
}

}  // namespace
}  // namespace mp::trace
