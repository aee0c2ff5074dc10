#include <gtest/gtest.h>

#include "kernels/base/reports/junit.hpp"
#include "kernels/base/reports/sarif.hpp"

namespace mp {
namespace {

TEST(Junit, ASuiteCountsItsCasesAndNothingIsMarkup) {
    junit::Suite suite{.name = "a<b"};
    suite.failures = 1;
    suite.add("c", "n", junit::problem("failure", "m\"", "error", {"x&", "y"}));
    suite.add("c", "fine", "");
    suite.add("c", "not run", junit::problem("skipped", "why", ""));
    suite.add("c", "said", junit::system_out({"l"}));
    const std::string cases =
        "    <testcase classname=\"c\" name=\"n\"><failure message=\"m&quot;\" "
        "type=\"error\">x&amp;&#10;y</failure>"
        "</testcase>\n"
        "    <testcase classname=\"c\" name=\"fine\"></testcase>\n"
        "    <testcase classname=\"c\" name=\"not run\"><skipped message=\"why\"/></testcase>\n"
        "    <testcase classname=\"c\" name=\"said\"><system-out>l</system-out></testcase>\n";
    const std::string counts = " tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"0\">\n";
    EXPECT_EQ(junit::document("t", {suite}, true),
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"t\"" + counts +
                  "  <testsuite name=\"a&lt;b\"" + counts + cases + "  </testsuite>\n</testsuites>\n");
}

TEST(Sarif, PathsAreBelowTheProjectOrWhole) {
    EXPECT_EQ(sarif::artifact("a b.py").dump(), R"({"uri":"a%20b.py","uriBaseId":"%SRCROOT%"})");
    EXPECT_EQ(sarif::artifact("/x/a.py").dump(), R"({"uri":"file:///x/a.py"})");
}

TEST(Sarif, ALogHasOneRunOfTheTool) {
    EXPECT_EQ(sarif::written(sarif::log_of(sarif::run_of("mp-lint", {{"name", "mp-lint"}}))),
              R"({"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[)"
              R"({"tool":{"driver":{"name":"mp-lint"}},"columnKind":"unicodeCodePoints",)"
              R"("automationDetails":{"id":"mp-lint/"}}]})"
              "\n");
    EXPECT_EQ(sarif::invocation(true, sarif::Json::array()).dump(), R"({"executionSuccessful":true})");
    EXPECT_EQ(sarif::tags().dump(), R"({"tags":["mixed-precision","numerics"]})");
    EXPECT_EQ(sarif::notification("warning", "w").dump(), R"({"level":"warning","message":{"text":"w"}})");
    EXPECT_EQ(sarif::message("m", "f"), "m. Fix: f");
}

}  // namespace
}  // namespace mp
