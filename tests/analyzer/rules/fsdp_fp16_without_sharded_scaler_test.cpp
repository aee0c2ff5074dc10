#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string sharded_program(std::string_view policy, std::string_view scaler = "") {
    return "unit /p/t.py language=python\n  func 1:5 t.main kind=python\n"
           "    call 2:5-30 torch.distributed.fsdp." +
           std::string(policy) +
           "]\n"
           "    call 3:5-30 torch.distributed.fsdp.FullyShardedDataParallel kind=constructor "
           "args=[{name=net} {call=0 keyword=mixed_precision}]\n"
           "    call 4:5-30 ?.backward kind=method args=[{name=loss}]\n"
           "    call 5:5-30 torch.optim.AdamW.step kind=method args=[{name=opt}]\n" +
           std::string(scaler);
}
constexpr std::string_view kFp16 = "MixedPrecision kind=constructor args=[{fp16 dtype keyword=param_dtype}";

TEST(FsdpFp16WithoutShardedScaler, Fp16WithoutAnyScalerIsAnError) {
    EXPECT_THAT(lint("MP212", {sharded_program(kFp16)}), ElementsAre("error 2"));
    EXPECT_THAT(
        lint("MP212",
             {sharded_program("MixedPrecision kind=constructor args=[{bf16 dtype keyword=param_dtype}")}),
        IsEmpty());
    EXPECT_THAT(lint("MP212", {sharded_program(kFp16)}, Profile::inference), IsEmpty());
}

TEST(FsdpFp16WithoutShardedScaler, APlainScalerDoesNotDo) {
    const std::string made = "    call 6:5-30 torch.amp.GradScaler kind=constructor result.name=scaler\n";
    EXPECT_THAT(lint("MP212", {sharded_program(kFp16, made)}), ElementsAre("error 2"));
    const std::string sharded =
        "    call 6:5-30 torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler "
        "kind=constructor\n";
    EXPECT_THAT(lint("MP212", {sharded_program(kFp16, sharded)}), IsEmpty());
}

TEST(FsdpFp16WithoutShardedScaler, TheNearestLoopIsTheOneThatIsNamed) {
    const auto loop = [](std::string path, std::string more) {
        return "unit " + path + " language=python\n  func 1:5 x.train kind=python usr=" + path +
               "\n"
               "    call 4:5-30 ?.backward kind=method args=[{name=loss}]\n"
               "    call 5:5-30 torch.optim.AdamW.step kind=method args=[{name=opt}]\n" +
               more;
    };
    const std::string policy =
        "unit /p/fsdp/policy.py language=python\n  func 1:5 policy.f kind=python\n"
        "    call 2:5-30 torch.distributed.fsdp." +
        std::string(kFp16) + "]\n";
    const Findings found =
        findings("MP212", {loop("/p/a.py", "    call 6:5-30 torch.amp.GradScaler kind=constructor\n"), policy,
                           loop("/p/fsdp/train.py",
                                "    call 6:5-30 torch.distributed.fsdp.FullyShardedDataParallel "
                                "kind=constructor args=[{name=net} {name=p keyword=mixed_precision}]\n")});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].notes[0].span.file.str(), "/p/fsdp/train.py");
    EXPECT_NE(found[0].message.find("no scaler keeps"), std::string::npos);
}

}  // namespace
}  // namespace mp::lint::test
