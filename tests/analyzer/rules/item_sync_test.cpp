#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp605(std::string_view facts) { return lint("MP605", {python(facts)}); }

TEST(ItemSync, TheScaleInEveryIteration) {
    const std::string call =
        "    call 5:9-30 torch.amp.GradScaler.get_scale kind=method args=[{object name=s}]";
    EXPECT_THAT(mp605(call + " loop_depth=1\n"), ElementsAre("note 5"));
    EXPECT_THAT(mp605(call + "\n"), IsEmpty()) << "once";
}

TEST(ItemSync, ATestForNanThatIsRead) {
    const std::string test = "    call 4:9 torch.isnan op=isnan args=[{tensor name=x}] loop_depth=1\n";
    EXPECT_THAT(
        mp605(test + "    call 4:20 torch.Tensor.item kind=method args=[{tensor call=0}] loop_depth=1\n"),
        ElementsAre("note 4"));
    EXPECT_THAT(mp605(test), IsEmpty()) << "the answer stays on the device";
    EXPECT_THAT(mp605("    call 4:9 torch.sum op=sum args=[{tensor name=x}] loop_depth=1\n"
                      "    call 4:20 torch.Tensor.item kind=method args=[{tensor call=0}] loop_depth=1\n"),
                IsEmpty());
}

TEST(ItemSync, NowAndThenIsSilent) {
    EXPECT_THAT(
        mp605("    block to=[1]\n    block to=[2 1]\n    block to=[1] leaves\n"
              "    call 4:9 ?.__mod__ kind=op args=[{other name=step} {constant=100}] block=1 loop_depth=1\n"
              "    call 5:9 torch.amp.GradScaler.get_scale kind=method args=[{object}] block=2 "
              "loop_depth=1\n"),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
