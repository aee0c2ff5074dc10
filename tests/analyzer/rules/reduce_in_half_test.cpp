#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp409(std::string_view facts, Profile profile = Profile::training) {
    return lint("MP409", {host(facts)}, profile);
}

std::string nccl(std::string name, std::string type, std::string operation,
                 std::string buffer = "{pointer name=g}") {
    return "call 6:9 " + name + " args=[" + buffer + " " + buffer + " {uint64} {constant=" + type +
           "} {constant=" + operation + "} {pointer} {pointer}]\n";
}

TEST(ReduceInHalf, SumAndAverageInHalfAreWarnings) {
    for (const std::string name : {"ncclAllReduce", "ncclReduceScatter", "ncclReduce"})
        for (const std::string type : {"ncclHalf", "ncclFloat16", "ncclBfloat16"})
            for (const std::string op : {"ncclSum", "ncclAvg"})
                EXPECT_THAT(mp409(nccl(name, type, op)), ElementsAre("warning 6")) << name << type << op;
}

TEST(ReduceInHalf, FloatMaximumAndUnknownAreSilent) {
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclFloat", "ncclSum")), IsEmpty());
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclHalf", "ncclMax")), IsEmpty());
    EXPECT_THAT(mp409("call 6:9 ncclAllReduce args=[{pointer} {pointer} {uint64} {name=type} "
                      "{constant=ncclSum} "
                      "{pointer} {pointer}]"),
                IsEmpty());
}

TEST(ReduceInHalf, CollectivesWithoutArithmeticAreSilent) {
    EXPECT_THAT(mp409("call 6:9 ncclAllGather args=[{fp16 pointer} {fp16 pointer} {uint64} "
                      "{constant=ncclHalf} "
                      "{pointer} {pointer}]"),
                IsEmpty());
    EXPECT_THAT(mp409("call 6:9 ncclBroadcast args=[{fp16 pointer} {fp16 pointer} {uint64} "
                      "{constant=ncclHalf} {int32} "
                      "{pointer} {pointer}]"),
                IsEmpty());
}

TEST(ReduceInHalf, DividingAfterAnFp16SumIsAnError) {
    const std::string divide =
        "call 8:3 at::Tensor::div_ kind=method op=div in_place args=[{tensor name=g} {int32}]\n";
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclHalf", "ncclSum") + divide), ElementsAre("error 6"));
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclBfloat16", "ncclSum") + divide), ElementsAre("warning 6"));
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclHalf", "ncclAvg") + divide), ElementsAre("warning 6"));
    EXPECT_THAT(mp409(divide + nccl("ncclAllReduce", "ncclHalf", "ncclSum")), ElementsAre("warning 6"));
    EXPECT_THAT(mp409(divide + nccl("ncclAllReduce", "ncclHalf", "ncclSum") + divide),
                ElementsAre("warning 6"));
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclHalf", "ncclSum") +
                      "call 8:3 at::Tensor::div_ op=div args=[{tensor name=other} {int32}]\n"),
                ElementsAre("warning 6"));
}

TEST(ReduceInHalf, MpiTellsByItsBuffer) {
    const auto mpi = [](std::string dtype, std::string op) {
        return mp409("call 6:9 MPI_Allreduce args=[{" + dtype + " pointer} {" + dtype +
                     " pointer} {int32} {text=t} {text=" + op + "} {text=c}]");
    };
    EXPECT_THAT(mpi("fp16", "MPI_SUM"), ElementsAre("warning 6"));
    EXPECT_THAT(mpi("fp16", "MPI_MAX"), IsEmpty());
    EXPECT_THAT(mpi("fp32", "MPI_SUM"), IsEmpty());
}

TEST(ReduceInHalf, SumsOfConstantsAreSilent) {
    const auto reduced = [](std::string value) {
        return lint("MP409", {"unit a.py language=python\n  func 1:1 a.f kind=python params=[{name=loss}]\n"
                              "    call 2:9 list kind=constructor args=[" +
                              value +
                              "]\n"
                              "    call 2:3 torch.Tensor kind=constructor args=[{call=0}] result.dtype=fp32 "
                              "result.shape=tensor\n"
                              "    call 2:3 torch.Tensor.half kind=method op=to args=[{fp32 tensor call=1}] "
                              "result.dtype=fp16 result.shape=tensor\n"
                              "    call 3:3 torch.distributed.all_reduce op=all_reduce args=[{fp16 tensor "
                              "call=2}]\n"});
    };
    EXPECT_THAT(reduced("{int64 scalar constant=1}"), IsEmpty());
    EXPECT_THAT(reduced("{name=loss}"), ElementsAre("warning 3"));
}

TEST(ReduceInHalf, InPythonBf16OnlyRounds) {
    const auto reduced = [](std::string dtype) {
        return lint("MP409", {"unit a.py language=python\n  func 1:1 a.f kind=python params=[{name=p}]\n"
                              "    call 3:3 torch.distributed.all_reduce op=all_reduce args=[{" +
                              dtype + " tensor name=p.grad}]\n"});
    };
    EXPECT_THAT(reduced("bf16"), ElementsAre("note 3"));
    EXPECT_THAT(reduced("fp16"), ElementsAre("warning 3"));
}

TEST(ReduceInHalf, InferenceProfileHasNoGradients) {
    EXPECT_THAT(mp409(nccl("ncclAllReduce", "ncclHalf", "ncclSum"), Profile::inference), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
