#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kToHalf =
    "call 7:9 at::Tensor::to kind=method op=to args=[{tensor name=x}] result.dtype=fp16 "
    "result.shape=tensor\n";

TEST(ManualCastInAutocast, CastThatAnFp32OpTakesIsAWarning) {
    const auto taken_by = [](std::string op) {
        return "call 8:9 at::" + op + " op=" + op + " args=[{fp16 tensor call=0}] result.shape=tensor\n";
    };
    EXPECT_THAT(lint("MP101", {step(), inner(kToHalf)}), ElementsAre("note 7")) << "in another file";
    EXPECT_THAT(lint("MP101", {step(), inner(kToHalf + taken_by("matmul"))}), ElementsAre("note 7"));
    EXPECT_THAT(lint("MP101", {step(), inner(kToHalf + taken_by("matmul") + taken_by("softmax"))}),
                ElementsAre("warning 7"));
}

TEST(ManualCastInAutocast, TheRegionIsShown) {
    const auto found = findings("MP101", {step(), inner(kToHalf)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_FALSE(found[0].notes.empty());
    EXPECT_EQ(found[0].notes.front().span.line, 3u);
    EXPECT_EQ(found[0].notes.front().span.file.str(), "step.cpp");
}

TEST(ManualCastInAutocast, WithoutARegionItIsSilent) {
    EXPECT_THAT(lint("MP101", {inner(kToHalf)}), IsEmpty());
}

TEST(ManualCastInAutocast, UpcastsAreSilent) {
    EXPECT_THAT(lint("MP101", {step(), inner("call 7:9 at::Tensor::to op=to args=[{tensor name=x}] "
                                             "result.dtype=fp32 result.shape=tensor\n")}),
                IsEmpty());
}

TEST(ManualCastInAutocast, CastToASavedDtypeIsNotKnownAndSilent) {
    EXPECT_THAT(lint("MP101",
                     {step(), inner("call 7:9 at::Tensor::to op=to args=[{tensor name=x} {name=input_dtype}] "
                                    "result.shape=tensor\n")}),
                IsEmpty());
}

TEST(ManualCastInAutocast, FunctionsThatAskForTheStateAreSilent) {
    EXPECT_THAT(lint("MP101", {step(), inner(std::string("call 6:9 at::autocast::is_enabled\n") + kToHalf)}),
                IsEmpty());
}

TEST(ManualCastInAutocast, GradientFreeScopesAreSilent) {
    EXPECT_THAT(lint("MP101", {step(), inner(std::string("call 6:9 torch::NoGradGuard kind=constructor\n") +
                                             kToHalf)}),
                IsEmpty());
}

TEST(ManualCastInAutocast, CastForARawKernelIsSilent) {
    EXPECT_THAT(
        lint("MP101", {step(), inner(std::string(kToHalf) + "call 7:30 at::Tensor::data_ptr kind=method "
                                                            "args=[{fp16 tensor call=0}]\n")}),
        IsEmpty());
}

TEST(ManualCastInAutocast, AfterTheRegionIsClosedItIsSilent) {
    EXPECT_THAT(
        lint("MP101", {step() + "    call 6:5 at::Tensor::to op=to args=[{tensor name=x}] result.dtype=fp16 "
                                "result.shape=tensor\n"}),
        IsEmpty());
}

constexpr const char* kHalf =
    "call 5:15-23 ?.half kind=method op=to args=[{other name=x param=1 span=5:15-16}] "
    "result.dtype=fp16 result.shape=tensor\n";

TEST(ManualCastInAutocast, APythonCastIsAWarningAndItsFixRemovesIt) {
    const auto found = findings("MP101", {python(open() + kHalf + close())});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_TRUE(found[0].safe_edits);
    EXPECT_EQ(found[0].edits[0].at.column, 16u);
    EXPECT_EQ(found[0].edits[0].at.end_column, 23u);
    EXPECT_EQ(found[0].edits[0].text, "");
}

TEST(ManualCastInAutocast, InATestOfTheUserItIsSilent) {
    std::string code = python(open() + kHalf + close());
    code.replace(code.find("train.py"), 8, "tests/test_train.py");
    EXPECT_THAT(lint("MP101", {code}), IsEmpty());
}

TEST(ManualCastInAutocast, UnderNoGradItIsSilent) {
    const std::string no_grad =
        "call 1:10 torch.no_grad kind=constructor\n"
        "call 1:10 torch.no_grad.__enter__ kind=method args=[{object call=0}]\n";
    EXPECT_THAT(lint("MP101", {python(no_grad +
                                      "call 2:10 torch.autocast kind=constructor "
                                      "args=[{constant=\"'cuda'\"}]\n"
                                      "call 2:10 torch.autocast.__enter__ kind=method "
                                      "args=[{object call=2} {constant=\"'cuda'\"}]\n" +
                                      kHalf)}),
                IsEmpty());
}

TEST(ManualCastInAutocast, AModuleCastBeforeItRunsInARegionIsAWarning) {
    const std::string cast =
        "call 1:5 torch.nn.Module.half kind=method args=[{module name=net}] result.dtype=fp16 "
        "result.shape=module\n";
    EXPECT_THAT(
        lint("MP101", {python(cast + "call 2:10 torch.autocast kind=constructor "
                                     "args=[{constant=\"'cuda'\"}]\n"
                                     "call 2:10 torch.autocast.__enter__ kind=method args=[{object "
                                     "call=1} {constant=\"'cuda'\"}]\n"
                                     "call 5:9 torch.nn.Linear.forward kind=method args=[{fp16 module "
                                     "name=net} {other name=x}]\n")}),
        ElementsAre("warning 1"));
    EXPECT_THAT(lint("MP101", {python(cast + "call 5:9 torch.nn.Linear.forward kind=method "
                                             "args=[{fp16 module name=net} {other name=x}]\n")}),
                IsEmpty());
}

// `torch.NAME(VALUE, dtype=torch.float16)` in a region.
std::string made(std::string_view name, std::string_view value, bool in_region = true) {
    const std::string call =
        "call 5:9 " + std::string(name) + " args=[" + std::string(value) +
        " {fp16 dtype keyword=dtype constant=torch.float16 span=5:30-49}] result.dtype=fp16 "
        "result.shape=tensor\n";
    return python(in_region ? open() + call + close() : call);
}

TEST(ManualCastInAutocast, ValuesMadeHalfInARegionAreAWarning) {
    const auto found = findings("MP101", {made("torch.tensor", "{other name=weights}")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].span.line, 5u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, "dtype=torch.float32");
    EXPECT_FALSE(found[0].safe_edits);
    EXPECT_THAT(lint("MP101", {made("torch.full", "{other name=size} {constant=0.1}")}),
                ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP101", {made("torch.tensor", "{other name=weights}", false)}), IsEmpty());
}

TEST(ManualCastInAutocast, ValuesThatHalfHoldsAreSilent) {
    EXPECT_THAT(lint("MP101", {made("torch.zeros", "{other name=size}")}), IsEmpty());
    EXPECT_THAT(lint("MP101", {made("torch.randn", "{other name=size}")}), IsEmpty());
    EXPECT_THAT(lint("MP101", {made("torch.full", "{other name=size} {constant=0.5}")}), IsEmpty());
    EXPECT_THAT(lint("MP101", {made("torch.full", "{other name=size} {other name=fill}")}), IsEmpty());
}

TEST(ManualCastInAutocast, TheInferenceProfileIsSilent) {
    EXPECT_THAT(lint("MP101", {python(open() + kHalf + close())}, Profile::inference), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
