#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string schedule(int line) {
    return call_line(line, "torch.optim.lr_scheduler.LambdaLR.step kind=method args=[{name=sched}] block=2");
}

TEST(SchedulerIgnoresSkippedStep, AStepThatAsksNobodyIsANote) {
    const std::string steps = scaled_backward(4) + on_scaler(5, "step") + on_scaler(6, "update");
    EXPECT_THAT(lint("MP211", {training(steps + schedule(7))}), ElementsAre("note 7"));
    EXPECT_THAT(lint("MP211", {training(steps + on_scaler(7, "get_scale") + schedule(8))}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
