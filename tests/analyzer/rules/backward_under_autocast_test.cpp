#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kBackward = "call 5:9-24 ?.backward kind=method args=[{other name=loss}]\n";
constexpr const char* kCppBackward =
    "call 7:5 at::Tensor::backward kind=method args=[{tensor name=x param=0}]\n";

TEST(BackwardUnderAutocast, InARegionOfAnotherFileIsANote) {
    EXPECT_THAT(lint("MP107", {step(), inner(kCppBackward)}), ElementsAre("note 7"));
}

TEST(BackwardUnderAutocast, WithoutARegionItIsSilent) {
    EXPECT_THAT(lint("MP107", {inner(kCppBackward)}), IsEmpty());
}

TEST(BackwardUnderAutocast, InAPythonWithBlockIsANote) {
    EXPECT_THAT(lint("MP107", {python(open() + kBackward + close())}), ElementsAre("note 5"));
}

TEST(BackwardUnderAutocast, AfterTheWithBlockIsSilent) {
    EXPECT_THAT(lint("MP107", {python(open() + close() + kBackward)}), IsEmpty());
}

TEST(BackwardUnderAutocast, ADisabledRegionIsSilent) {
    EXPECT_THAT(lint("MP107", {python(open("{bool constant=false keyword=enabled}") + kBackward + close())}),
                IsEmpty());
}

TEST(BackwardUnderAutocast, AutogradGradAndManualBackwardCount) {
    EXPECT_THAT(lint("MP107", {python(open() +
                                      "call 5:9 torch.autograd.grad args=[{tensor name=y}]\n"
                                      "call 6:9 ?.manual_backward kind=method args=[{other "
                                      "name=self} {other name=loss}]\n" +
                                      close())}),
                ElementsAre("note 5", "note 6"));
}

TEST(BackwardUnderAutocast, AMethodOfTheProgramIsNotJudgedItself) {
    EXPECT_THAT(lint("MP107", {python(open() +
                                      "call 5:9 train.Layer.backward callee=train.Layer.backward "
                                      "kind=method args=[{other name=layer}]\n" +
                                      close()),
                               "unit layer.py language=python\n  func 9:5 train.Layer.backward "
                               "kind=python params=[{name=self}]\n"}),
                IsEmpty());
}

TEST(BackwardUnderAutocast, CompiledCodeInTheRegionMakesItAnError) {
    EXPECT_THAT(
        lint("MP107", {python("call 1:9 torch.compile args=[{other name=model}] result.shape=module "
                              "result.name=net\n"
                              "call 2:10 torch.autocast kind=constructor args=[{constant=\"'cuda'\"}]\n"
                              "call 2:10 torch.autocast.__enter__ kind=method args=[{object call=1} "
                              "{constant=\"'cuda'\"}]\n"
                              "call 3:9 ?.__call__ kind=method args=[{module name=net call=0}]\n" +
                              std::string(kBackward) +
                              "call 2:10 torch.autocast.__exit__ kind=method args=[{object call=2}]\n")}),
        ElementsAre("error 5"));
}

}  // namespace
}  // namespace mp::lint::test
