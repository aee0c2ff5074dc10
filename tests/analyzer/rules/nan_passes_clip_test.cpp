#include "analyzer/rules/rule.hpp"
#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

// A kernel that averages gradients times a factor, and a function that hands it a factor of 1 or another one.
std::string program(std::string_view condition, std::string_view more = "", std::string_view dtype = "bf16") {
    const std::string c = "\"" + std::string(condition) + "\"";
    return "unit t.cu language=cuda\n"
           "  func 10:5 adam kind=kernel params=[{" +
           std::string(dtype) +
           " pointer name=g} {fp32 name=scale}]\n"
           "    scaling 12:5-30 g param=0 dtype=" +
           std::string(dtype) +
           " factor.dtype=fp32 factor.param=1 factor.name=scale averages\n"
           "  func 20:5 update params=[{fp32 name=limit}]\n"
           "    block to=[{1 condition=" +
           c + "} {2 condition=" + c +
           " when=false}]\n"
           "    block to=[{3}]\n"
           "    block to=[{3}]\n"
           "    block leaves\n" +
           std::string(more) +
           "    call 25:5-30 adam kind=kernel callee=adam args=[{pointer name=grad} "
           "{fp32 name=scale alternative=1}] block=3\n";
}

TEST(NanPassesClip, AFactorOfOneForNanIsAWarning) {
    EXPECT_THAT(lint("MP214", {program("(norm>limit)")}), ElementsAre("warning 25"));
    EXPECT_THAT(lint("MP214", {program("(limit<grad_norm)")}), ElementsAre("warning 25"));
}

TEST(NanPassesClip, TestsOfTheNormAndOfOtherValues) {
    const auto with = [](std::string_view value) {
        return program("(norm>limit)",
                       "    call 22:5-30 std::isfinite args=[{fp32 name=" + std::string(value) + "}]\n");
    };
    EXPECT_THAT(lint("MP214", {with("norm")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {with("score")}), ElementsAre("warning 25"));
}

TEST(NanPassesClip, ATestOnTheDeviceGuardsTheUpdate) {
    const std::string guard =
        "  func 40:5 skip kind=kernel\n    call 41:5-30 isfinite args=[{fp32 name=value}]\n";
    EXPECT_THAT(lint("MP214", {program("(norm>limit)") + guard}), IsEmpty());
}

TEST(NanPassesClip, OnlyAFactorOfOneThatAnOptimizerMultipliesBy) {
    const auto with = [](std::string_view old, std::string_view replacement) {
        std::string text = program("(norm>limit)");
        return text.replace(text.find(old), old.size(), replacement);
    };
    EXPECT_THAT(lint("MP214", {with("alternative=1", "alternative=2")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {with("averages", "")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {with("averages", "averages divides")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {with("averages", "averages stored")}), IsEmpty());
}

TEST(NanPassesClip, OtherConditionsAreNoClip) {
    EXPECT_THAT(lint("MP214", {program("(scale>max_norm)")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {program("(step>limit)")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {program("(norm>limit&&step>3)")}), IsEmpty());
    EXPECT_THAT(lint("MP214", {program("(norm==norm)")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
