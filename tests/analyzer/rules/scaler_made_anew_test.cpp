#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

// A function that makes a scaler and steps with it in a loop, for the optimizer that its caller passes.
std::string epoch(std::string_view scaler, std::string_view more = "", std::string_view blocks = "") {
    return "  func 1:9 t.epoch kind=python params=[{other name=opt}]\n" + std::string(blocks) +
           "    call 2:5-30 torch.amp.GradScaler kind=constructor args=[" + std::string(scaler) +
           "] result.name=scaler\n" + std::string(more) +
           "    call 4:5-30 torch.amp.GradScaler.step kind=method args=[{object call=0 name=scaler} "
           "{other param=0 name=opt}] loop_depth=1\n"
           "    call 5:5-30 torch.amp.GradScaler.update kind=method args=[{object call=0 name=scaler}] "
           "loop_depth=1\n";
}

// Calls it `depth` loops deep, with an optimizer that is made `made` loops deep.
std::string caller(int depth, int made) {
    return "  func 11:19 t.main kind=python\n"
           "    call 12:5-30 torch.optim.SGD kind=constructor result.name=opt loop_depth=" +
           std::to_string(made) +
           "\n    call 13:5-30 t.epoch callee=t.epoch args=[{object call=0 name=opt}] loop_depth=" +
           std::to_string(depth) + "\n";
}

const std::string kUnit = "unit t.py language=python\n";

TEST(ScalerMadeAnew, ALoopThatCallsItForOneOptimizer) {
    EXPECT_THAT(lint("MP215", {kUnit + epoch("") + caller(1, 0)}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP215", {kUnit + epoch("") + caller(0, 0)}), IsEmpty()) << "called once";
    EXPECT_THAT(lint("MP215", {kUnit + epoch("") + caller(1, 1)}), IsEmpty()) << "a training of its own";
    EXPECT_THAT(lint("MP215", {kUnit + epoch("") + caller(2, 1)}), ElementsAre("warning 2"));
}

TEST(ScalerMadeAnew, WhatSwitchesItOffAndWhatItGoesOnFrom) {
    EXPECT_THAT(lint("MP215", {kUnit + epoch("{name=amp keyword=enabled}") + caller(1, 0)}),
                ElementsAre("note 2"));
    EXPECT_THAT(lint("MP215", {kUnit + epoch("{constant=false keyword=enabled}") + caller(1, 0)}), IsEmpty());
    const std::string loads =
        "    call 3:5-30 torch.amp.GradScaler.load_state_dict kind=method args=[{object call=0 "
        "name=scaler}]\n";
    EXPECT_THAT(lint("MP215", {kUnit + epoch("", loads) + caller(1, 0)}), IsEmpty());
}

TEST(ScalerMadeAnew, AScalerThatIsMadeIfThereIsNone) {
    const std::string blocks = "    block to=[2 1]\n    block leaves\n    block to=[1]\n";
    std::string made = epoch("", "", blocks);
    made.replace(made.find("result.name=scaler"), 18, "result.name=scaler block=2");
    for (std::size_t at = 0; (at = made.find("loop_depth=1", at)) != std::string::npos; at += 20)
        made.replace(at, 12, "block=1 loop_depth=1");
    EXPECT_THAT(lint("MP215", {kUnit + made + caller(1, 0)}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
