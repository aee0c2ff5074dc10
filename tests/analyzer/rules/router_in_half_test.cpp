#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// self.gate(x), in a method of Router
std::string gate(std::string_view dtype, std::string_view receiver = "name=self.gate") {
    return "unit moe.py language=python\n"
           "  func 1:5 moe.Router.forward kind=python parent_class=moe.Router bases=[torch.nn.Module] "
           "params=[{module name=self} {tensor name=x}]\n"
           "    call 2:5 torch.nn.Linear.forward kind=method op=linear args=[{" +
           std::string(dtype) + " module " + std::string(receiver) + "} {" + std::string(dtype) +
           " tensor param=1 name=x}] result.shape=tensor\n";
}

// Some code of the program trains.
const std::string kTrains =
    "unit train.py language=python\n  func 1:5 train.step kind=python params=[{tensor name=loss}]\n"
    "    call 2:5 torch.Tensor.backward kind=method args=[{tensor param=0 name=loss}]\n";

constexpr std::string_view kSelection =
    "    call 3:5 torch.nn.functional.softmax op=softmax args=[{tensor call=0}] result.shape=tensor\n"
    "    call 4:5 torch.topk op=topk args=[{tensor call=1} {constant=2}] result.shape=other\n";

TEST(RouterInHalf, GateInHalfFeedsTopK) {
    EXPECT_THAT(lint("MP309", {gate("bf16") + std::string(kSelection), kTrains}), ElementsAre("warning 4"));
    EXPECT_THAT(lint("MP309", {gate("bf16") + std::string(kSelection)}), ElementsAre("note 4"));
    EXPECT_THAT(lint("MP309", {gate("fp32") + std::string(kSelection)}), IsEmpty());
    EXPECT_THAT(lint("MP309", {gate("unknown") + std::string(kSelection)}), IsEmpty());
}

TEST(RouterInHalf, SoftmaxInFp32OfLogitsInHalfIsFound) {
    EXPECT_THAT(
        lint("MP309",
             {gate("bf16") + "    call 3:5 torch.nn.functional.softmax op=softmax args=[{tensor call=0}] "
                             "result.dtype=fp32 result.shape=tensor\n"
                             "    call 4:5 torch.topk op=topk args=[{fp32 tensor call=1} {constant=2}]\n",
              kTrains}),
        ElementsAre("warning 4"));
}

TEST(RouterInHalf, IndexedLogitsAreSampled) {
    EXPECT_THAT(lint("MP309", {gate("bf16") +
                               "    call 3:5 torch.Tensor.__getitem__ kind=op args=[{bf16 tensor call=0}] "
                               "result.dtype=bf16 result.shape=tensor\n"
                               "    call 4:5 torch.topk op=topk args=[{bf16 tensor call=1} {constant=2}]\n"}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
