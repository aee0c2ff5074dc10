#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string op(std::string_view facts = "", std::string_view second = "tensor") {
    return "unit ops.py language=python\n  func 7:5 ops.roi kind=python "
           "annotations=[\"torch.library.custom_op('mine::roi', mutates_args=())\"] "
           "params=[{tensor name=x} {" +
           std::string(second) + " name=boxes}]\n" + std::string(facts);
}

constexpr const char* kUse = "call 4:9 ops.roi callee=ops.roi args=[{other name=x}]\n";
constexpr const char* kRegister =
    "    call 20:1 torch.library.register_autocast args=[{object constant=\"'mine::roi'\"} {object "
    "constant=\"'cuda'\"}]\n";

TEST(CustomOpWithoutAutocastKernel, AnOpUsedInARegionIsANote) {
    EXPECT_THAT(lint("MP115", {op(), python(open() + kUse + close())}), ElementsAre("note 7"));
}

TEST(CustomOpWithoutAutocastKernel, ThroughTorchOpsItIsFoundToo) {
    EXPECT_THAT(lint("MP115", {op(), python(open() + "call 4:9 torch.ops.mine.roi\n" + close())}),
                ElementsAre("note 7"));
}

TEST(CustomOpWithoutAutocastKernel, OutsideARegionItIsSilent) {
    EXPECT_THAT(lint("MP115", {op(), python(kUse)}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, ARegisteredRuleIsSilent) {
    EXPECT_THAT(lint("MP115", {op(), "unit reg.py language=python\n  func 1:1 reg.<module> "
                                     "kind=python\n" +
                                         std::string(kRegister),
                               python(open() + kUse + close())}),
                IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, AnOpOfOneTensorIsSilent) {
    EXPECT_THAT(lint("MP115", {op("", "int64"), python(open() + kUse + close())}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, ABodyThatCastsIsSilent) {
    EXPECT_THAT(lint("MP115", {op("    call 8:5 torch.Tensor.float kind=method args=[{tensor "
                                  "name=x}]\n"),
                               python(open() + kUse + close())}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
