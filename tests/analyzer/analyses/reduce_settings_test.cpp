#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string reduce(std::string name, std::string op, std::string more = "", std::string dtype = "fp16") {
    return "    call 5:3 torch.distributed." + name + " op=" + op + " args=[{" + dtype + " tensor name=g}" +
           more + "]\n";
}

const std::string kDivide =
    "    call 6:3 torch.Tensor.div_ kind=method op=div in_place args=[{fp16 tensor name=g} "
    "{constant=8}]\n";

TEST(ReduceInHalfOfPython, CollectivesSumByDefault) {
    EXPECT_THAT(lint("MP409", {python(reduce("all_reduce", "all_reduce"))}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP409", {python(reduce("all_reduce", "all_reduce", "", "fp32"))}), IsEmpty());
    EXPECT_THAT(lint("MP409", {python(reduce("all_reduce", "all_reduce", "", "unknown"))}), IsEmpty());
    EXPECT_THAT(lint("MP409", {python(reduce("broadcast", "broadcast"))}), IsEmpty());
}

TEST(ReduceInHalfOfPython, TheOperationDecides) {
    const auto with = [](std::string op) {
        return lint("MP409",
                    {python(reduce("all_reduce", "all_reduce",
                                   " {keyword=op constant=torch.distributed.ReduceOp." + op + "}"))});
    };
    EXPECT_THAT(with("SUM"), ElementsAre("warning 5"));
    EXPECT_THAT(with("AVG"), ElementsAre("warning 5"));
    EXPECT_THAT(with("MAX"), IsEmpty());
    EXPECT_THAT(lint("MP409", {python(reduce("all_reduce", "all_reduce", " {keyword=op name=o}"))}),
                IsEmpty());
}

TEST(ReduceInHalfOfPython, AnFp16SumThatIsDividedAfterwardsIsAnError) {
    EXPECT_THAT(lint("MP409", {python(reduce("all_reduce", "all_reduce") + kDivide)}),
                ElementsAre("error 5"));
    EXPECT_THAT(lint("MP409", {python(kDivide + reduce("all_reduce", "all_reduce"))}), ElementsAre("note 5"));
}

TEST(ReduceInHalfOfPython, HooksAndConfigurations) {
    const auto hook = [](std::string name) {
        return lint("MP409", {python("    call 5:3 ?.register_comm_hook kind=method args=[{name=m} "
                                     "{constant=None} {constant=torch.distributed.algorithms."
                                     "ddp_comm_hooks.default_hooks." +
                                     name + "}]\n")});
    };
    EXPECT_THAT(hook("fp16_compress_hook"), ElementsAre("note 5")) << "it divides first";
    EXPECT_THAT(hook("allreduce_hook"), IsEmpty());
    const auto deepspeed = [](std::string dtype) {
        return lint("MP409",
                    {python("    setting 4:1 communication_data_type value.constant=\"'" + dtype + "'\"\n")});
    };
    EXPECT_THAT(deepspeed("fp16"), ElementsAre("warning 4"));
    EXPECT_THAT(deepspeed("bf16"), ElementsAre("note 4"));
    EXPECT_THAT(deepspeed("fp32"), IsEmpty());
    const auto megatron = [](std::string value, std::string model = "bf16 constant=true") {
        return lint("MP409", {python("    call 4:3 ?.TransformerConfig args=[{keyword=" + model +
                                     "}]\n"
                                     "    call 5:3 megatron.core.distributed.DistributedDataParallelConfig "
                                     "kind=constructor args=[{keyword=grad_reduce_in_fp32 constant=" +
                                     value + "}]\n")});
    };
    EXPECT_THAT(megatron("false"), ElementsAre("warning 5"));
    EXPECT_THAT(megatron("true"), IsEmpty());
    EXPECT_THAT(megatron("false", "params_dtype bf16 dtype constant=torch.bfloat16"),
                ElementsAre("warning 5"));
    EXPECT_THAT(megatron("false", "hidden_size constant=12"), IsEmpty()) << "an fp32 model";
}

}  // namespace
}  // namespace mp::lint::test
