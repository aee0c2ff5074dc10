// A field that a record gains is in the reports, or is named here as omitted. The sections are written by hand where
// keys, order or units differ from the list of fields, so that nothing else would notice.

#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "runtime/report/json_report.hpp"
#include "runtime/report/page.hpp"
#include "runtime/trace/records.hpp"
#include "tests/fakes/source_dir.hpp"
#include "tests/runtime/report/sample_run.hpp"

namespace mp::trace {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

template <class Record>
Names fields_of() {
    Names out;
    fields([&out](const Field& f, auto) { out.emplace(f.name); }, Of<Record>{});
    return out;
}

Names keys_of(const json& object) {
    Names out;
    for (const auto& [key, value] : object.items()) out.insert(key);
    return out;
}

// `renamed`: the key that has the field, or what follows from it.
template <class Record>
void expect_fields(const Names& keys, const std::map<std::string, std::string>& renamed,
                   const Names& omitted) {
    const Names names = fields_of<Record>();
    for (const std::string& name : names) {
        const auto other = renamed.find(name);
        EXPECT_EQ(keys.contains(other == renamed.end() ? name : other->second), !omitted.contains(name))
            << name;
    }
    for (const std::string& name : omitted) EXPECT_TRUE(names.contains(name)) << name << " is not a field";
    for (const auto& [name, key] : renamed) EXPECT_TRUE(names.contains(name)) << name << " is not a field";
}

class FieldLists : public testing::Test {
protected:
    const RunModel model = test::sample_model();
    const json report = json::parse(json_text(json_report(model, {})));
};

TEST_F(FieldLists, AProcess) {
    Names keys = keys_of(report["run"]["processes"].at(0));
    keys.merge(keys_of(report["run"]));
    expect_fields<ProcessRecord>(keys, {}, {"nvtx_domains"});
}

TEST_F(FieldLists, ALoss) {
    expect_fields<LossRecord>(keys_of(report["steps"].at(0)["ranks"].at(0)["losses"].at(0)),
                              {{"real", "loss"}, {"twin", "twin_loss"}}, {"has_twin"});
}

TEST_F(FieldLists, ACollective) {
    expect_fields<CollectiveRecord>(
        keys_of(report["collectives"].at(0)),
        {{"compared", "worst_phi"}, {"error_squares", "relative_l2"}, {"sum_squares", "relative_l2"}},
        {"finite_inputs", "lost_inputs", "ranks", "lost_results", "beyond", "communicator", "member",
         "device"});
}

TEST_F(FieldLists, TheCoverageOfThePage) {
    const json data = json::parse(script_json(page_data(model, {})));
    expect_fields<Coverage>(keys_of(data["trust"]["coverage"]),
                            {{"shadowed_bytes", "bytes"},
                             {"unshadowed_bytes", "bytes"},
                             {"seeds", "seeds_after_first"},
                             {"external", "external_after_first"}},
                            {"seeded_bytes", "relaid", "outside"});
}

TEST_F(FieldLists, TheSchemaHasEveryFieldOfTheCoverage) {
    std::ifstream file(std::string(mp_source_dir()) + "/docs/report.schema.json");
    const json schema = json::parse(file), &coverage = schema.at("$defs").at("coverage");
    const json &section = report["coverage"], &rank = section["ranks"].at(0);
    Names required = coverage["required"], known = keys_of(coverage["properties"]);
    for (const std::string& key : fields_of<Coverage>()) EXPECT_TRUE(required.contains(key)) << key;
    EXPECT_TRUE(known.erase("worst_leak_hex")) << "for a value that JSON does not have";
    EXPECT_EQ(required, known);
    known.insert({"not_observed", "ranks"});
    EXPECT_EQ(keys_of(section), known);
    required.insert({"rank", "restart"});
    EXPECT_EQ(keys_of(rank), required);
    const json& part = schema.at("properties").at("coverage");
    EXPECT_EQ(part.at("unevaluatedProperties"), false);
    EXPECT_EQ(part.at("properties").at("ranks").at("items").at("unevaluatedProperties"), false);
}

}  // namespace
}  // namespace mp::trace
