// The list of fields says which of them the JSON report has under their own names. The sections of these records are
// written by hand, so that nothing else would notice.

#include <set>

#include <gtest/gtest.h>

#include "runtime/report/json_report.hpp"
#include "runtime/trace/records.hpp"
#include "tests/runtime/report/sample_run.hpp"

namespace mp::trace {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

Names keys_of(const json& object) {
    Names out;
    for (const auto& [key, value] : object.items()) out.insert(key);
    return out;
}

template <class Record>
void expect_marked(const Names& keys) {
    fields([&](const Field& f, auto) { EXPECT_EQ(keys.contains(std::string(f.name)), f.report) << f.name; },
           Of<Record>{});
}

class FieldLists : public testing::Test {
protected:
    const RunModel model = test::sample_model();
    const json report = json::parse(json_text(json_report(model, {})));
};

TEST_F(FieldLists, AProcess) {
    Names keys = keys_of(report["run"]["processes"].at(0));
    keys.merge(keys_of(report["run"]));
    expect_marked<ProcessRecord>(keys);
}

TEST_F(FieldLists, ALoss) {
    expect_marked<LossRecord>(keys_of(report["steps"].at(0)["ranks"].at(0)["losses"].at(0)));
}

TEST_F(FieldLists, ACollective) { expect_marked<CollectiveRecord>(keys_of(report["collectives"].at(0))); }

}  // namespace
}  // namespace mp::trace
