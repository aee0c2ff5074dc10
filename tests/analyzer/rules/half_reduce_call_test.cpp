#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp402(std::string_view fact) { return lint("MP402", {kernel(fact)}); }

TEST(HalfReduceCall, CubBlockSumOfHalfIsAnError) {
    EXPECT_THAT(mp402("call 9:5 cub::BlockReduce::Sum kind=method template_args=[{fp16 scalar text=__half} "
                      "text=256] args=[{object} {fp16 text=v}] result.dtype=fp16"),
                ElementsAre("error 9"));
}

TEST(HalfReduceCall, CubBlockSumOfFloatIsSilent) {
    EXPECT_THAT(mp402("call 9:5 cub::BlockReduce::Sum kind=method template_args=[{fp32 scalar text=float} "
                      "text=256] args=[{object} {fp32 text=v}] result.dtype=fp32"),
                IsEmpty());
}

TEST(HalfReduceCall, ReduceDependsOnItsOperator) {
    const std::string call =
        "call 9:5 cub::BlockReduce::Reduce kind=method template_args=[{fp16 scalar text=__half}] "
        "args=[{object} {fp16 text=v} {object text=\"OP\"}] result.dtype=fp16";
    const auto with = [&](std::string op) { return std::string(call).replace(call.find("OP"), 2, op); };
    EXPECT_THAT(mp402(with("cub::Sum()")), ElementsAre("error 9"));
    EXPECT_THAT(mp402(with("cuda::std::plus<>{}")), ElementsAre("error 9"));
    EXPECT_THAT(mp402(with("cub::Max()")), IsEmpty());
    EXPECT_THAT(mp402(with("cuda::maximum<>{}")), IsEmpty());
    EXPECT_THAT(mp402(with("my_op")), IsEmpty());
}

TEST(HalfReduceCall, DeviceSumIsHalfOnlyWhenInputAndOutputAre) {
    const auto sum = [](std::string in, std::string out) {
        return mp402("call 9:5 cub::DeviceReduce::Sum args=[{pointer} {uint64} {" + in + " pointer} {" + out +
                     " pointer} {int32}]");
    };
    EXPECT_THAT(sum("fp16", "fp16"), ElementsAre("error 9"));
    EXPECT_THAT(sum("bf16", "bf16"), ElementsAre("error 9"));
    EXPECT_THAT(sum("fp16", "fp32"), IsEmpty());
    EXPECT_THAT(sum("fp32", "fp16"), IsEmpty());
}

TEST(HalfReduceCall, DeviceMaxIsSilent) {
    EXPECT_THAT(mp402("call 9:5 cub::DeviceReduce::Max args=[{pointer} {uint64} {fp16 pointer} "
                      "{fp16 pointer} "
                      "{int32}]"),
                IsEmpty());
}

TEST(HalfReduceCall, StandardAccumulateHasTheTypeOfItsInitialValue) {
    EXPECT_THAT(mp402("call 9:5 std::accumulate args=[{object} {object} {fp16 text=\"c10::Half(0)\"}] "
                      "result.dtype=fp16"),
                ElementsAre("error 9"));
    EXPECT_THAT(mp402("call 9:5 std::accumulate args=[{object} {object} {fp32 text=0.f}] result.dtype=fp32"),
                IsEmpty());
}

TEST(HalfReduceCall, ThrustReduceWithMaximumIsSilent) {
    EXPECT_THAT(mp402("call 9:5 thrust::reduce args=[{fp16 pointer} {fp16 pointer} {fp16} {object "
                      "text=\"thrust::maximum<__half>()\"}] result.dtype=fp16"),
                IsEmpty());
    EXPECT_THAT(mp402("call 9:5 thrust::reduce args=[{fp16 pointer} {fp16 pointer} {fp16} {object "
                      "text=\"thrust::plus<__half>()\"}] result.dtype=fp16"),
                ElementsAre("error 9"));
}

TEST(HalfReduceCall, CustomOperatorIsUnknownAndSilent) {
    EXPECT_THAT(mp402("call 9:5 std::accumulate args=[{object} {object} {fp16} {object "
                      "text=\"[](auto a, auto b)\"}] "
                      "result.dtype=fp16 lambdas=[l]"),
                IsEmpty());
}

TEST(HalfReduceCall, CooperativeGroupsSum) {
    EXPECT_THAT(mp402("call 9:5 cooperative_groups::reduce args=[{object} {fp16 text=v} {object "
                      "text=\"cg::plus<__half>()\"}] result.dtype=fp16"),
                ElementsAre("error 9"));
    EXPECT_THAT(mp402("call 9:5 cooperative_groups::reduce args=[{object} {fp16 text=v} {object "
                      "text=\"cg::greater<__half>()\"}] result.dtype=fp16"),
                IsEmpty());
}

TEST(HalfReduceCall, SameNamesOutsideTheLibrariesAreSilent) {
    EXPECT_THAT(mp402("call 9:5 mine::accumulate args=[{object} {object} {fp16}] result.dtype=fp16"),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
