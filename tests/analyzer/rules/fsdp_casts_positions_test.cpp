#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string sharded(std::string_view more, int depth = 1) {
    return "unit a.py language=python\n  func 1:5 a.shard kind=python params=[{other name=model}]\n"
           "    call 2:5 torch.distributed.fsdp.MixedPrecisionPolicy kind=constructor args=[{bf16 dtype "
           "keyword=param_dtype}" +
           std::string(more) +
           "] result.shape=object result.name=policy\n"
           "    call 3:5 torch.distributed.fsdp.fully_shard args=[{other name=layer} {object call=0 "
           "keyword=mp_policy}] loop_depth=" +
           std::to_string(depth) + "\n";
}

std::string layers(std::string_view dtype) {
    return "  func 9:5 a.Model.forward kind=python parent_class=a.Model bases=[torch.nn.Module] "
           "params=[{module "
           "name=self} {tensor name=x}]\n"
           "    call 10:5 torch.arange args=[{constant=64}] result.dtype=" +
           std::string(dtype) +
           " result.shape=tensor\n"
           "    call 11:5 torch.Tensor.cos kind=method op=cos args=[{" +
           std::string(dtype) + " tensor call=0}] result.shape=tensor\n" +
           "    call 12:5 ?.__call__ kind=method args=[{other name=layer} {tensor param=1 name=x} {tensor "
           "call=1}] "
           "loop_depth=1\n";
}

TEST(FsdpCastsPositions, PositionsInFp32AreCast) {
    EXPECT_THAT(lint("MP121", {sharded("") + layers("fp32")}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP121", {sharded("") + layers("bf16")}), IsEmpty());
}

TEST(FsdpCastsPositions, PolicyThatCastsNoInputsIsSilent) {
    EXPECT_THAT(lint("MP121", {sharded(" {constant=false keyword=cast_forward_inputs}") + layers("fp32")}),
                IsEmpty());
}

TEST(FsdpCastsPositions, WholeModelIsSilent) {
    EXPECT_THAT(lint("MP121", {sharded("", 0) + layers("fp32")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
