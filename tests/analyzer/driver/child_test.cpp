#include "analyzer/driver/child.hpp"

#include <gmock/gmock.h>

namespace mp::lint {
namespace {

TEST(RunChild, GivesInputAndTakesBothOutputs) {
    const auto child = run_child({"sh", "-c", "cat; echo no >&2; pwd; exit 3"}, "/", "hello\n");
    ASSERT_TRUE(child);
    EXPECT_EQ(child->code, 3);
    EXPECT_EQ(child->out, "hello\n/\n");
    EXPECT_EQ(child->err, "no\n");
}

TEST(RunChild, NothingBlocksOnMuchText) {
    const std::string much(5 << 20, 'x');
    const auto child = run_child({"cat"}, {}, much);
    ASSERT_TRUE(child);
    EXPECT_EQ(child->out, much);
    EXPECT_EQ(run_child({"true"}, {}, much)->code, 0);
}

TEST(RunChild, AMissingProgramIsAnErrorAndASignalACode) {
    EXPECT_THAT(run_child({"no-such-program-here"}).error().message,
                testing::HasSubstr("no-such-program-here cannot be run"));
    EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"})->code, 137);
}

}  // namespace
}  // namespace mp::lint
