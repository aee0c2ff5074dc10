#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

std::string op(std::string name, std::string dtype, std::string more = "") {
    return "call 7:9 at::Tensor::" + name + " kind=method op=" + name + " args=[{" + dtype +
           " tensor name=h}" + more + "] result.shape=tensor\n";
}

std::vector<std::string> plain(const std::string& fact, Profile profile = Profile::training) {
    return lint("MP102", {host(fact)}, profile);
}

TEST(Fp32OpInLowPrecision, HalfTensorWithoutAutocastIsAWarning) {
    for (const std::string name : {"exp", "pow", "cumsum", "linalg_matrix_exp", "fft_rfft", "stft"})
        EXPECT_THAT(plain(op(name, "fp16")), ElementsAre("warning 7")) << name;
}

TEST(Fp32OpInLowPrecision, Bf16HasTheRangeAndIsAWarning) {
    EXPECT_THAT(plain(op("exp", "bf16")), ElementsAre("warning 7"));
    EXPECT_THAT(plain(op("exp", "lowp")), ElementsAre("warning 7"));
}

TEST(Fp32OpInLowPrecision, SumsThatRoundOnceAreNotesUnlessTheirTermsAreLarge) {
    for (const std::string name : {"sum", "nansum", "norm", "linalg_vector_norm", "std", "var"})
        EXPECT_THAT(plain(op(name, "fp16")), ElementsAre("note 7")) << name;
    const auto sum_of = [](const std::string& made) {
        return plain("call 6:9 at::" + made +
                     " result.shape=tensor\n    call 7:9 at::sum op=sum args=[{fp16 tensor call=0}] "
                     "result.shape=tensor\n");
    };
    EXPECT_THAT(sum_of("mul op=mul args=[{fp16 tensor name=x} {fp16 tensor name=x}]"),
                ElementsAre("warning 7"));
    EXPECT_THAT(sum_of("mul op=mul args=[{fp16 tensor name=x} {fp16 tensor name=y}]"), ElementsAre("note 7"));
    EXPECT_THAT(sum_of("exp op=exp args=[{fp16 tensor name=x}]"), ElementsAre("warning 6", "warning 7"));
}

TEST(Fp32OpInLowPrecision, AVarianceThatDividesIsAWarning) {
    const auto spread_in = [](const std::string& more) {
        return plain(op("var", "fp16") + "    call 8:9 at::" + more + " result.shape=tensor\n");
    };
    EXPECT_THAT(spread_in("div op=div args=[{tensor name=x} {tensor call=0}]"), ElementsAre("warning 7"));
    EXPECT_THAT(spread_in("div op=div args=[{tensor call=0} {tensor name=x}]"), ElementsAre("note 7"));
    EXPECT_THAT(spread_in("add op=add args=[{tensor call=0} {}]\n    call 9:9 at::div op=div "
                          "args=[{tensor name=x} {tensor call=1}]"),
                ElementsAre("warning 7"));
}

TEST(Fp32OpInLowPrecision, BoundedOpsAreNotes) {
    for (const std::string name : {"softmax", "layer_norm", "mean"})
        EXPECT_THAT(plain(op(name, "fp16")), ElementsAre("note 7")) << name;
}

TEST(Fp32OpInLowPrecision, FloatUnknownAndOtherOpsAreSilent) {
    EXPECT_THAT(plain(op("sum", "fp32")), IsEmpty());
    EXPECT_THAT(plain(op("sum", "unknown")), IsEmpty());
    for (const std::string name : {"relu", "add", "max", "matmul", "linalg_vecdot"})
        EXPECT_THAT(plain(op(name, "fp16")), IsEmpty()) << name;
}

TEST(Fp32OpInLowPrecision, AskingForFloatIsSilent) {
    EXPECT_THAT(plain(op("sum", "fp16", " {constant=at::kFloat}")), IsEmpty());
    EXPECT_THAT(plain("call 7:9 at::sum op=sum args=[{fp16 tensor}] result.dtype=fp32 result.shape=tensor"),
                IsEmpty());
}

TEST(Fp32OpInLowPrecision, OpsOnTheDevicesListAreSilent) {
    // CUDA's list has sum and exp, not std; CPU's has none of the three.
    for (const std::string name : {"sum", "exp"}) {
        EXPECT_THAT(lint("MP102", {step(), inner(op(name, "fp16"))}), IsEmpty()) << name;
        EXPECT_THAT(lint("MP102", {step("cpu_"), inner(op(name, "bf16"))}).size(), 1u) << name;
    }
    EXPECT_THAT(lint("MP102", {step(), inner(op("std", "fp16"))}).size(), 1u);
    EXPECT_THAT(lint("MP102", {step(), inner(op("std", "fp32"))}), IsEmpty());
}

TEST(Fp32OpInLowPrecision, CompositesAreProtectedByTheirParts) {
    // cross_entropy is on no CUDA list, its log_softmax is; on CPU it is listed itself.
    EXPECT_THAT(lint("MP102", {step(), inner(op("cross_entropy", "fp16"))}), IsEmpty());
    EXPECT_THAT(plain(op("cross_entropy", "fp16")), ElementsAre("note 7"));
}

TEST(Fp32OpInLowPrecision, NoListAppliesToAnInPlaceOp) {
    const std::string in_place =
        "call 7:9 at::Tensor::exp_ kind=method op=exp in_place args=[{fp16 tensor name=h}] "
        "result.shape=tensor\n";
    EXPECT_THAT(lint("MP102", {step(), inner(in_place)}).size(), 1u);
}

TEST(Fp32OpInLowPrecision, RegionAndListAreNamed) {
    const auto found = findings("MP102", {step(), inner(op("std", "fp16"))});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0].message, HasSubstr("cuda autocast does not protect it"));
    ASSERT_FALSE(found[0].notes.empty());
    EXPECT_EQ(found[0].notes.front().span.file.str(), "step.cpp");
}

TEST(Fp32OpInLowPrecision, HalfIntrinsicsOnStatisticsAreWarnings) {
    const auto call = [](std::string name, std::string args) {
        return lint("MP102", {kernel("call 7:9 " + name + " args=[" + args + "] result.dtype=fp16")});
    };
    EXPECT_THAT(call("__hdiv", "{fp16} {fp16 stat=sum name=total}"), ElementsAre("warning 7"));
    EXPECT_THAT(call("hexp", "{fp16 stat=mean}"), ElementsAre("warning 7"));
    EXPECT_THAT(call("hlog", "{lowp stat=sum}"), ElementsAre("warning 7"));
    EXPECT_THAT(call("hexp", "{fp16 name=x}"), IsEmpty());
    EXPECT_THAT(call("expf", "{fp32 stat=sum}"), IsEmpty());
}

TEST(Fp32OpInLowPrecision, RootsOfAVarianceBelongToTheStatisticsRule) {
    const std::string root = "call 7:9 hrsqrt args=[{fp16 stat=variance}] result.dtype=fp16";
    EXPECT_THAT(lint("MP102", {kernel(root)}), IsEmpty());
    EXPECT_THAT(lint("MP405", {kernel(root)}), ElementsAre("error 7"));
}

TEST(Fp32OpInLowPrecision, InferenceProfileMakesHalfModelsANote) {
    EXPECT_THAT(plain(op("sum", "fp16"), Profile::inference), ElementsAre("note 7"));
}

std::string log_of(std::string_view product, std::string_view dtype = "fp16") {
    const std::string opens =
        "{constant=\"'cuda'\"} {" + std::string(dtype) + " dtype constant=torch.half keyword=dtype}]\n";
    return "unit m.py language=python\n"
           "  func 1:5 m.compress kind=python params=[{other name=x}]\n"
           "    call 2:5-30 torch.clamp op=clamp args=[{other param=0}] result.shape=tensor\n"
           "    call 2:5-40 torch.log op=log args=[{tensor call=0}] result.shape=tensor\n"
           "    return tensor call=1\n"
           "  func 4:5 m.f kind=python params=[{other name=a} {other name=b}]\n"
           "    call 5:5-30 torch.autocast kind=constructor args=[" +
           opens + "    call 5:5-30 torch.autocast.__enter__ kind=method args=[{call=0} " + opens +
           "    call 6:5-30 torch.softmax op=softmax args=[{other param=0}] result.shape=tensor\n"
           "    call 7:5-30 torch.matmul op=matmul args=[{" +
           std::string(product) +
           "} {other param=1}] result.shape=tensor\n"
           "    call 8:5-30 m.compress callee=m.compress args=[{tensor call=3}]\n"
           "    call 9:5-30 torch.autocast.__exit__ kind=method args=[{call=1}]\n";
}

TEST(Fp32OpInLowPrecision, AProductWhoseLogarithmIsTakenIsReportedWhereItIsMade) {
    EXPECT_THAT(lint("MP102", {log_of("other param=0")}), ::testing::Contains("warning 7"));
    EXPECT_THAT(lint("MP102", {log_of("other param=0", "bf16")}),
                ::testing::Not(::testing::Contains("warning 7")));
    EXPECT_THAT(lint("MP102", {log_of("tensor call=2")}), ::testing::Not(::testing::Contains("warning 7")))
        << "probabilities stay in range";
}

}  // namespace
}  // namespace mp::lint::test
