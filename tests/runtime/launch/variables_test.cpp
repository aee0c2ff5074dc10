#include "runtime/launch/variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::launch {
namespace {

using testing::ElementsAre;

constexpr const char* kOurs = "/opt/mp/lib/mp-trace/libmptrace_preload.so";
constexpr const char* kShim = "/opt/mp/lib/mp-trace/python";

TEST(Preload, ComesFirstAndKeepsWhatWasThere) {
    EXPECT_EQ(with_preload("", kOurs), kOurs);
    EXPECT_EQ(with_preload("/a.so", kOurs), std::string(kOurs) + ":/a.so");
    EXPECT_EQ(with_preload("/a.so /b.so:c.so", kOurs), std::string(kOurs) + ":/a.so /b.so:c.so");
}

TEST(Preload, IsNotDoubledByANestedLauncher) {
    const std::string once = with_preload("/a.so:/b.so", kOurs);
    EXPECT_EQ(with_preload(once, kOurs), once);
    EXPECT_EQ(with_preload("/other/lib/mp-trace/libmptrace_preload.so /a.so", kOurs),
              std::string(kOurs) + ":/a.so");
    EXPECT_EQ(without_preload(kOurs), "");
}

TEST(PythonPath, ComesFirstAndKeepsEmptyEntries) {
    EXPECT_EQ(with_shim("", kShim), kShim);
    EXPECT_EQ(with_shim("a::b", kShim), std::string(kShim) + ":a::b")
        << "an empty entry is the working directory";
    EXPECT_EQ(with_shim("a b:c", kShim), std::string(kShim) + ":a b:c");
}

TEST(PythonPath, IsNotDoubledByANestedLauncher) {
    const std::string once = with_shim("a::b:", kShim);
    EXPECT_EQ(with_shim(once, kShim), once);
    EXPECT_EQ(with_shim("/other/lib/mp-trace/python:a", kShim), std::string(kShim) + ":a");
    EXPECT_EQ(with_shim("/x/python", kShim), std::string(kShim) + ":/x/python") << "somebody's own directory";
}

TEST(Variables, KeepOrderAndWhatIsNoAssignment) {
    Variables v({"B=1", "odd", "A=2", "=x", "A=3"});
    EXPECT_STREQ(v.get("A"), "2");
    EXPECT_EQ(v.get("C"), nullptr);
    EXPECT_EQ(v.get("od"), nullptr);
    v.set("A", "new");
    v.set("C", "a=b");
    EXPECT_THAT(v.entries(), ElementsAre("B=1", "odd", "A=new", "=x", "C=a=b"));
    v.unset("B");
    EXPECT_EQ(v.get("B"), nullptr);
    EXPECT_STREQ(v.get("C"), "a=b");
}

TEST(Untraced, TakesBackWhatAnOuterLauncherHasAdded) {
    const Variables v =
        untraced(Variables({"MP_TRACE_OPTIONS=/x", "LD_PRELOAD=" + with_preload("/a.so", kOurs),
                            "PYTHONPATH=" + with_shim("", kShim), "HOME=/h"}));
    EXPECT_THAT(v.entries(), ElementsAre("LD_PRELOAD=/a.so", "HOME=/h"));
}

TEST(Untraced, LeavesAnUntouchedEnvironmentAlone) {
    const Variables v = untraced(Variables({"LD_PRELOAD=", "PYTHONPATH=a::b"}));
    EXPECT_THAT(v.entries(), ElementsAre("LD_PRELOAD=", "PYTHONPATH=a::b"));
}

TEST(Paths, ThatLoadersWouldSplitAreSeen) {
    EXPECT_TRUE(fits_preload("/opt/mp/libmptrace_preload.so"));
    EXPECT_FALSE(fits_preload("/my programs/libmptrace_preload.so"));
    EXPECT_FALSE(fits_preload("/a:b/libmptrace_preload.so"));
    EXPECT_TRUE(fits_python_path("/my programs/python"));
    EXPECT_FALSE(fits_python_path("/a:b/python"));
}

}  // namespace
}  // namespace mp::launch
