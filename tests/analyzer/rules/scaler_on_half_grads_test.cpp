#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string loop(std::string_view dtype, std::string_view scaler = "torch.amp.GradScaler") {
    return "unit t.py language=python\n  func 1:5 t.train kind=python\n"
           "    call 2:5-30 torch.optim.SGD kind=constructor args=[{" +
           std::string(dtype) +
           " parameters}] result.name=opt\n"
           "    call 3:5-30 " +
           std::string(scaler) +
           " kind=constructor result.name=scaler\n"
           "    call 4:5-30 " +
           std::string(scaler) + ".step kind=method args=[{name=scaler call=1} {name=opt call=0}]\n";
}

TEST(ScalerOnHalfGrads, Fp16ParametersCannotBeUnscaled) {
    EXPECT_THAT(lint("MP207", {loop("fp16")}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP207", {loop("fp32")}), IsEmpty());
    EXPECT_THAT(lint("MP207", {loop("unknown")}), IsEmpty());
}

TEST(ScalerOnHalfGrads, Bf16ParametersAreRefusedOnCuda) {
    EXPECT_THAT(lint("MP207", {loop("bf16")}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP207", {loop("bf16", "torch.cuda.amp.GradScaler")}), ElementsAre("error 4"));
    EXPECT_THAT(lint("MP207", {loop("bf16", "torch.cpu.amp.GradScaler")}), IsEmpty());
    EXPECT_THAT(lint("MP207", {loop("lowp")}), IsEmpty());
}

TEST(ScalerOnHalfGrads, AShardedScalerAllowsThem) {
    EXPECT_THAT(lint("MP207", {loop("fp16", "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler")}),
                IsEmpty());
}

std::string trainer(std::string_view dtype, std::string_view fp16) {
    return "unit t.py language=python\n  func 1:5 t.main kind=python\n"
           "    call 2:5-30 transformers.TrainingArguments kind=constructor args=[{constant=" +
           std::string(fp16) +
           " keyword=fp16}]\n"
           "    call 3:5-30 transformers.Trainer kind=constructor args=[{" +
           std::string(dtype) + " module keyword=model} {call=0 keyword=args}]\n";
}

TEST(ScalerOnHalfGrads, TheTrainerScalesTooWithFp16) {
    EXPECT_THAT(lint("MP207", {trainer("fp16", "true")}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP207", {trainer("fp16", "false")}), IsEmpty());
    EXPECT_THAT(lint("MP207", {trainer("fp32", "true")}), IsEmpty());
    EXPECT_THAT(lint("MP207", {trainer("fp16", "args.fp16")}), IsEmpty());
    EXPECT_THAT(lint("MP207", {trainer("bf16", "true")}), ElementsAre("error 3"));
}

}  // namespace
}  // namespace mp::lint::test
