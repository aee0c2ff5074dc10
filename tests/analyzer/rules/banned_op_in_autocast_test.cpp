#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kBce =
    "call 7:9 at::binary_cross_entropy op=binary_cross_entropy args=[{tensor name=x param=0} "
    "{tensor}] "
    "result.shape=tensor\n";

TEST(BannedOpInAutocast, InACudaRegionOfAnotherFileIsAnError) {
    EXPECT_THAT(lint("MP103", {step(), inner(kBce)}), ElementsAre("error 7"));
}

TEST(BannedOpInAutocast, CpuRegionAndNoRegionAreSilent) {
    EXPECT_THAT(lint("MP103", {step("cpu_"), inner(kBce)}), IsEmpty());
    EXPECT_THAT(lint("MP103", {inner(kBce)}), IsEmpty());
}

TEST(BannedOpInAutocast, WithLogitsIsSilent) {
    EXPECT_THAT(
        lint("MP103", {step(), inner("call 7:9 at::binary_cross_entropy_with_logits "
                                     "op=binary_cross_entropy_with_logits args=[{tensor} {tensor}]\n")}),
        IsEmpty());
}

TEST(BannedOpInAutocast, DisabledRegionIsSilent) {
    const std::string off = "call 6:5 at::autocast::set_enabled args=[{bool constant=false}]\n";
    EXPECT_THAT(lint("MP103", {step(), inner(off + kBce)}), IsEmpty());
}

TEST(BannedOpInAutocast, LossModuleIsTheSameOp) {
    EXPECT_THAT(
        lint("MP103", {step(), inner("call 7:9 torch::nn::BCELossImpl::forward kind=method args=[{object} "
                                     "{tensor} {tensor}] result.shape=tensor\n")}),
        ElementsAre("error 7"));
    EXPECT_THAT(lint("MP103", {step(), inner("call 7:9 torch::nn::BCEWithLogitsLossImpl::forward kind=method "
                                             "args=[{object} {tensor} {tensor}] result.shape=tensor\n")}),
                IsEmpty());
}

TEST(BannedOpInAutocast, TheChainFromTheRegionIsShown) {
    const auto found = findings("MP103", {step(), inner(kBce)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_GE(found[0].notes.size(), 2u);
    EXPECT_EQ(found[0].notes[0].span.line, 3u);
    EXPECT_EQ(found[0].notes[1].span.line, 4u);
}

TEST(BannedOpInAutocast, PythonsFunctionAndModuleAreErrors) {
    EXPECT_THAT(lint("MP103", {python(open() +
                                      "call 5:9 torch.nn.functional.binary_cross_entropy "
                                      "op=binary_cross_entropy args=[{tensor name=p}]\n"
                                      "call 6:9 torch.nn.BCELoss.forward kind=method "
                                      "args=[{module name=loss} {tensor name=p}]\n"
                                      "call 7:9 torch.nn.BCEWithLogitsLoss.forward kind=method "
                                      "args=[{module name=loss} {tensor name=p}]\n" +
                                      close())}),
                ElementsAre("error 5", "error 6"));
}

TEST(BannedOpInAutocast, AFlaggedRegionOfPythonIsAWarning) {
    EXPECT_THAT(lint("MP103", {python(open("{other name=amp text=amp keyword=enabled}") +
                                      "call 5:9 torch.nn.functional.binary_cross_entropy "
                                      "op=binary_cross_entropy args=[{tensor name=p}]\n" +
                                      close())}),
                ElementsAre("warning 5"));
}

}  // namespace
}  // namespace mp::lint::test
