#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string norm(int line) {
    return call_line(line, "torch.Tensor.norm op=norm kind=method args=[{tensor name=p.grad}] block=2");
}

TEST(ScaledGradInspection, NormOfAScaledGradientIsAWarning) {
    const std::string end = on_scaler(7, "step") + on_scaler(8, "update");
    EXPECT_THAT(lint("MP209", {training(scaled_backward(4) + norm(5) + end)}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP209", {training(scaled_backward(4) + on_scaler(5, "unscale_") + norm(6) + end)}),
                IsEmpty());
    EXPECT_THAT(lint("MP209", {training(plain_backward(4) + norm(5) + end)}), IsEmpty());
}

TEST(ScaledGradInspection, ATestForOverflowSaysWhatItHidesFromTheScaler) {
    const std::string end = on_scaler(7, "step") + on_scaler(8, "update");
    for (const std::string test : {"isinf", "isnan", "isfinite", "isposinf"}) {
        const std::string asks =
            call_line(5, "torch." + test + " kind=function args=[{tensor name=p.grad}] block=2");
        const auto found = findings("MP209", {training(scaled_backward(4) + asks + end)});
        ASSERT_EQ(found.size(), 1u) << test;
        EXPECT_THAT(found[0].message, testing::HasSubstr("falls only if step() sees the overflow"));
        EXPECT_THAT(found[0].fix, testing::HasSubstr("step() of the scaler"));
    }
}

std::string penalised(std::string_view outputs) {
    return training(call_line(3, "torch.amp.autocast kind=constructor args=[{constant=\"'cuda'\"}] block=2") +
                    call_line(3, "torch.amp.autocast.__enter__ kind=method args=[{call=0}] block=2") +
                    scale_line(4) +
                    call_line(5, "torch.autograd.grad args=[{tensor " + std::string(outputs) +
                                     "} {constant=true keyword=create_graph}] block=2") +
                    call_line(6, "?.backward kind=method args=[{name=scaled}] block=2"));
}

TEST(ScaledGradInspection, PenaltyOfAnUnscaledLossIsAWarning) {
    EXPECT_THAT(lint("MP209", {penalised("name=score")}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP209", {penalised("name=scaled")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
