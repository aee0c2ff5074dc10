#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// x.pow(exponent).mean()
std::string mean_of_power(std::string dtype, std::string exponent = "2") {
    return python("    call 5:3 torch.Tensor.pow kind=method op=pow args=[{" + dtype +
                  " tensor name=x} {constant=" + exponent + "}] result.dtype=" + dtype +
                  " result.shape=tensor\n"
                  "    call 6:3 torch.Tensor.mean kind=method op=mean args=[{" +
                  dtype + " tensor call=0}] result.dtype=" + dtype + " result.shape=tensor\n");
}

std::string root_of(std::string dtype, std::string op) {
    return python("    call 5:3 torch.Tensor." + op + " kind=method op=" + op + " args=[{" + dtype +
                  " tensor name=x}] result.dtype=" + dtype +
                  " result.shape=tensor\n"
                  "    call 5:9 torch.Tensor.__add__ kind=op op=add args=[{" +
                  dtype + " tensor call=0} {constant=0.001}] result.dtype=" + dtype +
                  " result.shape=tensor\n"
                  "    call 6:3 torch.rsqrt op=rsqrt args=[{" +
                  dtype + " tensor call=1}] result.shape=tensor\n");
}

TEST(NormStats, AMeanOfSquaresHasOneOwner) {
    EXPECT_THAT(lint("MP405", {mean_of_power("fp16")}), ElementsAre("error 6"));
    EXPECT_THAT(lint("MP405", {mean_of_power("lowp")}), ElementsAre("warning 6"));
    EXPECT_THAT(lint("MP405", {mean_of_power("fp32")}), IsEmpty());
    EXPECT_THAT(lint("MP102", {mean_of_power("fp16")}), IsEmpty());
    // Another power is not a variance.
    EXPECT_THAT(lint("MP405", {mean_of_power("fp16", "3")}), IsEmpty());
    EXPECT_THAT(lint("MP102", {mean_of_power("fp16", "3")}), ElementsAre("warning 5", "note 6"));
    EXPECT_THAT(lint("MP102", {mean_of_power("bf16", "3")}), ElementsAre("note 5", "note 6"));
}

TEST(NormStats, TheRootOfAVariance) {
    EXPECT_THAT(lint("MP405", {root_of("fp16", "var")}), ElementsAre("error 6"));
    EXPECT_THAT(lint("MP102", {root_of("fp16", "var")}), IsEmpty());
    EXPECT_THAT(lint("MP405", {root_of("fp32", "var")}), IsEmpty());
    EXPECT_THAT(lint("MP405", {root_of("fp16", "amax")}), IsEmpty());
}

// sum(x ** 2) / 8 - mean(x) ** 2
TEST(NormStats, AVarianceAsADifferenceOfMeans) {
    const auto difference = [](std::string dtype, std::string subtracted) {
        const std::string x = "{" + dtype + " tensor name=x}", made = "] result.shape=tensor\n";
        return python(
            "    call 3:3 torch.Tensor.__pow__ op=pow args=[" + x + " {constant=2}" + made +
            "    call 4:3 torch.sum op=sum args=[{tensor call=0}" + made +
            "    call 5:3 torch.mean op=mean args=[" + x + made +
            "    call 6:3 torch.Tensor.__pow__ op=pow args=[{tensor " + subtracted + "} {constant=2}" + made +
            "    call 7:3 torch.Tensor.__sub__ op=sub args=[{tensor call=1} {tensor call=3}" + made);
    };
    EXPECT_THAT(lint("MP405", {difference("bf16", "call=2")}), ElementsAre("warning 7"));
    EXPECT_THAT(lint("MP405", {difference("fp32", "call=2")}), IsEmpty());
    EXPECT_THAT(lint("MP405", {difference("bf16", "name=y")}), IsEmpty());  // no mean of it
}

TEST(NormStats, BatchNormsAreCastWithTheirRunningStatistics) {
    const auto cast = [](std::string module, std::string dtype) {
        return lint("MP405", {python("    call 5:3 torch.nn." + module +
                                     " kind=constructor result.dtype=fp32 result.shape=module\n"
                                     "    call 5:9 torch.nn.Module.to kind=method args=[{fp32 module "
                                     "call=0}] result.dtype=" +
                                     dtype + " result.shape=module\n")});
    };
    EXPECT_THAT(cast("BatchNorm2d", "fp16"), ElementsAre("warning 5"));
    EXPECT_THAT(cast("BatchNorm2d", "fp32"), IsEmpty());
    EXPECT_THAT(cast("LayerNorm", "fp16"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
