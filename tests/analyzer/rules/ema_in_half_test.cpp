#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string update(std::string dtype, std::string decay, std::string alpha) {
    return "    call 4:5-20 torch.Tensor.mul_ kind=method op=mul args=[{" + dtype + " tensor name=ema} {" +
           decay + "}] result.dtype=" + dtype + " result.shape=tensor in_place\n" +
           "    call 4:5-50 torch.Tensor.add_ kind=method op=add args=[{" + dtype +
           " tensor call=0} {tensor name=w} {" + alpha + " keyword=alpha}] in_place\n";
}

std::vector<std::string> mp502(std::string_view facts) { return lint("MP502", {python(facts)}); }

TEST(EmaInHalf, ALongMemoryIsLost) {
    EXPECT_THAT(mp502(update("bf16", "constant=0.9999", "constant=0.0001")), ElementsAre("error 4"));
    EXPECT_THAT(mp502(update("fp16", "constant=0.9999", "constant=0.0001")), ElementsAre("error 4"));
    EXPECT_THAT(mp502(update("fp32", "constant=0.9999", "constant=0.0001")), IsEmpty());
}

TEST(EmaInHalf, TheThresholdIsThatOfTheFormat) {
    EXPECT_THAT(mp502(update("bf16", "constant=0.998", "constant=0.002")), ElementsAre("error 4"));
    EXPECT_THAT(mp502(update("fp16", "constant=0.998", "constant=0.002")), IsEmpty());
    EXPECT_THAT(mp502(update("bf16", "constant=0.98", "constant=0.02")), IsEmpty());
}

TEST(EmaInHalf, BelowTheThresholdAQuarterOfTheWeightIsLost) {
    EXPECT_THAT(mp502(update("bf16", "constant=0.99", "constant=0.01")), ElementsAre("warning 4"));
    EXPECT_THAT(mp502(update("fp16", "constant=0.999", "constant=0.001")), ElementsAre("warning 4"));
}

TEST(EmaInHalf, AnUnknownDecayIsSilent) {
    EXPECT_THAT(mp502(update("bf16", "name=decay", "name=alpha")), IsEmpty());
}

TEST(EmaInHalf, Interpolation) {
    const auto lerp = [](std::string dtype, std::string weight) {
        return mp502("    call 4:5 torch.Tensor.lerp_ kind=method op=lerp args=[{" + dtype +
                     " tensor name=ema} {tensor name=w} {constant=" + weight + "}] in_place\n");
    };
    EXPECT_THAT(lerp("fp16", "0.0001"), ElementsAre("error 4"));
    EXPECT_THAT(lerp("fp16", "0.1"), IsEmpty());
    EXPECT_THAT(lerp("fp32", "0.0001"), IsEmpty());
}

TEST(EmaInHalf, KernelsThatInterpolate) {
    const std::string store =
        "    update 7:5 \"v[i]\" param=0 dtype=bf16 computed=fp32 interpolates adds_a_square";
    EXPECT_THAT(lint("MP502", {kernel(store + "\n")}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP502", {kernel(store + " has_master\n")}), IsEmpty());
    EXPECT_THAT(lint("MP502", {kernel(store + " has_master master_optional\n")}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP502", {kernel("    update 7:5 m param=0 dtype=bf16 computed=fp32 interpolates\n")}),
                ElementsAre("note 7"))
        << "an average over few steps";
    EXPECT_THAT(lint("MP502", {kernel("    update 7:5 w param=0 dtype=fp16 computed=fp32 subtracts\n")}),
                IsEmpty());
}

TEST(EmaInHalf, NotInTheInferenceProfile) {
    EXPECT_THAT(
        lint("MP502", {python(update("bf16", "constant=0.9999", "constant=0.0001"))}, Profile::inference),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
