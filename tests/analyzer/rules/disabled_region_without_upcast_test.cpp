#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 0 to 2: an enabled region that makes q in half; calls 3 and 4: an island inside it.
std::string island(std::string_view facts) {
    return python(open() +
                  "call 3:9 torch.matmul op=matmul args=[{other name=x} {other name=w}] "
                  "result.shape=tensor result.name=q\n"
                  "call 4:14 torch.autocast kind=constructor args=[{constant=\"'cuda'\"} "
                  "{bool constant=false keyword=enabled}]\n"
                  "call 4:14 torch.autocast.__enter__ kind=method args=[{object call=3} "
                  "{constant=\"'cuda'\"} {bool constant=false keyword=enabled}]\n" +
                  std::string(facts) +
                  "call 4:14 torch.autocast.__exit__ kind=method args=[{object call=4}]\n" + close());
}

constexpr const char* kSoftmax =
    "call 5:17-27 torch.softmax op=softmax args=[{tensor name=q call=2 text=q span=5:31-32}]\n";

TEST(DisabledRegionWithoutUpcast, AHalfTensorFromOutsideIsAWarning) {
    EXPECT_THAT(lint("MP104", {island(kSoftmax)}), ElementsAre("warning 5"));
}

TEST(DisabledRegionWithoutUpcast, TheFixUpcastsTheName) {
    const auto found = findings("MP104", {island(kSoftmax)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, ".float()");
    EXPECT_EQ(found[0].edits[0].at.column, 32u);
    EXPECT_EQ(found[0].edits[0].at.end_column, 32u);
    EXPECT_TRUE(found[0].safe_edits);
}

TEST(DisabledRegionWithoutUpcast, AnUpcastOneIsSilent) {
    EXPECT_THAT(lint("MP104", {island("call 5:17 torch.Tensor.float kind=method op=to args=[{tensor "
                                      "name=q call=2}] result.dtype=fp32 result.shape=tensor\n"
                                      "call 5:9 torch.softmax op=softmax args=[{fp32 tensor "
                                      "call=5}]\n")}),
                IsEmpty());
}

TEST(DisabledRegionWithoutUpcast, WhatIsMadeInsideIsReportedOnce) {
    EXPECT_THAT(lint("MP104",
                     {island(std::string(kSoftmax) + "call 6:17 torch.log op=log args=[{tensor call=5}]\n")}),
                ElementsAre("warning 5"));
}

TEST(DisabledRegionWithoutUpcast, AnUnknownInputIsSilent) {
    EXPECT_THAT(lint("MP104", {island("call 5:17 torch.softmax op=softmax args=[{other name=z}]\n")}),
                IsEmpty());
}

TEST(DisabledRegionWithoutUpcast, OpsThatNeedNoFp32AreSilent) {
    EXPECT_THAT(lint("MP104", {island("call 5:17 torch.relu op=relu args=[{tensor name=q call=2}]\n")}),
                IsEmpty());
}

TEST(DisabledRegionWithoutUpcast, TheSettersOfCppMakeAnIsland) {
    const std::string text =
        "unit a.cpp\n  func 1:1 step usr=step params=[{tensor name=x}]\n"
        "    call 3:5 at::autocast::set_enabled args=[{bool constant=true}]\n"
        "    call 4:5 at::matmul op=matmul args=[{tensor name=x} {tensor name=x}] "
        "result.shape=tensor result.name=q\n"
        "    call 5:5 at::autocast::set_enabled args=[{bool constant=false}]\n"
        "    call 6:5 at::softmax op=softmax args=[{tensor name=q call=1}]\n";
    EXPECT_THAT(lint("MP104", {text + "    call 7:5 at::autocast::set_enabled "
                                      "args=[{bool constant=true}]\n"}),
                ElementsAre("warning 6"));
    EXPECT_THAT(lint("MP104", {text}), IsEmpty()) << "the region just ends there";
}

}  // namespace
}  // namespace mp::lint::test
