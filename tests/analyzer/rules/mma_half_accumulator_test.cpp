#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp407(std::string_view fact) { return lint("MP407", {kernel(fact)}); }

std::vector<std::string> assembly(const std::string& text) {
    return mp407("call 5:3 asm kind=assembly args=[{constant=\"" + text + "\"}]");
}

constexpr std::string_view kProduct = "\n    call 9:3 nvcuda::wmma::mma_sync loop_depth=1";

// What a loop multiplies by default.
std::string fragment(std::string use, std::string type, std::string_view calls = kProduct) {
    return "type 5:3 nvcuda::wmma::fragment args=[{text=nvcuda::wmma::" + use +
           "} {text=16} {text=16} {text=16} " + type + "]" + std::string(calls);
}

TEST(MmaHalfAccumulator, OneProductOrNoneIsANote) {
    const auto half = [](std::string_view calls) {
        return mp407(fragment("accumulator", "{fp16 scalar text=__half}", calls));
    };
    const std::string once = "\n    call 9:3 nvcuda::wmma::mma_sync";
    EXPECT_THAT(half(""), ElementsAre("note 5"));
    EXPECT_THAT(half(once), ElementsAre("note 5"));
    EXPECT_THAT(half(once + once), ElementsAre("warning 5"));
    // Code that is not known may multiply with an object that it is given.
    EXPECT_THAT(half("\n    call 9:3 tile::multiply args=[{other name=sum}]"), ElementsAre("warning 5"));
    EXPECT_THAT(half("\n    call 9:3 __syncthreads"), ElementsAre("note 5"));
}

TEST(MmaHalfAccumulator, AccumulatorFragmentOfHalf) {
    EXPECT_THAT(mp407(fragment("accumulator", "{fp16 scalar text=__half}")), ElementsAre("warning 5"));
    EXPECT_THAT(mp407(fragment("accumulator", "{fp32 scalar text=float}")), IsEmpty());
}

TEST(MmaHalfAccumulator, OperandFragmentsAreSilent) {
    EXPECT_THAT(mp407(fragment("matrix_a", "{fp16 scalar text=__half}")), IsEmpty());
    EXPECT_THAT(mp407(fragment("matrix_b", "{fp16 scalar text=__half}")), IsEmpty());
}

TEST(MmaHalfAccumulator, InlineAssemblyNamesTheAccumulatorFirst) {
    EXPECT_THAT(assembly("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2}, {%3}, {%4};"),
                ElementsAre("warning 5"));
    EXPECT_THAT(assembly("{ wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16 {%0}, %1, %2; }"),
                ElementsAre("warning 5"));
    EXPECT_THAT(assembly("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0};"), IsEmpty());
    // D in half rounds every result, whatever C was; D in float does not.
    EXPECT_THAT(assembly("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {%0};"), ElementsAre("warning 5"));
    EXPECT_THAT(assembly("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 {%0};"), IsEmpty());
    EXPECT_THAT(assembly("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0};"), IsEmpty());
    EXPECT_THAT(assembly("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0};"), IsEmpty());
    EXPECT_THAT(assembly("cvt.rn.f16.f32 %0, %1;"), IsEmpty());
    EXPECT_THAT(assembly(""), IsEmpty());
}

TEST(MmaHalfAccumulator, AnInstructionThatAddsToZerosContinuesNoSum) {
    const auto mma = [](std::string c, std::string rest) {
        return mp407(
            "call 5:3 asm kind=assembly args=[{constant=\"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
            "{%0}, {%1}, {%1}, {" +
            c + "};\"} {name=d} {name=a} " + rest + "]");
    };
    EXPECT_THAT(mma("%2, %3", "{constant=0} {constant=0}"), IsEmpty());
    EXPECT_THAT(mma("%2, %3", "{constant=0} {name=c}"), ElementsAre("warning 5"));
    EXPECT_THAT(mma("%2, %3", "{constant=0}"), ElementsAre("warning 5"));
    EXPECT_THAT(mma("%0", "{constant=0}"), ElementsAre("warning 5"));
    EXPECT_THAT(mma("%c", "{constant=0}"), ElementsAre("warning 5"));
}

TEST(MmaHalfAccumulator, CutlassAccumulator) {
    EXPECT_THAT(mp407("type 5:3 cutlass::half_t alias=ElementAccumulator args=[{fp16 scalar "
                      "text=cutlass::half_t}]"),
                ElementsAre("warning 5"));
    EXPECT_THAT(mp407("type 5:3 float alias=ElementAccumulator args=[{fp32 scalar text=float}]"), IsEmpty());
    EXPECT_THAT(mp407("type 5:3 cutlass::half_t alias=ElementA args=[{fp16 scalar text=cutlass::half_t}]"),
                IsEmpty());
}

TEST(MmaHalfAccumulator, OtherNamesCountForCutlassTypesOnly) {
    const auto alias = [](std::string name, std::string type) {
        return mp407("type 5:3 " + type + " alias=" + name + " args=[{fp16 scalar text=" + type + "}]");
    };
    EXPECT_THAT(alias("TypeAccumulator", "cutlass::half_t"), ElementsAre("warning 5"));
    EXPECT_THAT(alias("GradientAccumulator", "__half"), IsEmpty());
    EXPECT_THAT(mp407("type 5:3 cutlass::Array alias=FragmentAccumulator args=[{fp16 scalar "
                      "text=cutlass::half_t} {text=8}]"),
                IsEmpty());
}

TEST(MmaHalfAccumulator, SeventhArgumentOfACutlassGemm) {
    const auto gemm = [](std::string accumulator) {
        return mp407(
            "type 5:3 cutlass::gemm::device::Gemm args=[{fp16 scalar} {text=RowMajor} {fp16 "
            "scalar} "
            "{text=RowMajor} {fp16 scalar} {text=RowMajor} {" +
            accumulator + " scalar}]");
    };
    EXPECT_THAT(gemm("fp16"), ElementsAre("warning 5"));
    EXPECT_THAT(gemm("fp32"), IsEmpty());
}

TEST(MmaHalfAccumulator, CuteAtomListsItsTypes) {
    EXPECT_THAT(mp407("type 5:3 cute::MMA_Atom args=[{text=cute::SM80_16x8x16_F16F16F16F16_TN}]"),
                ElementsAre("warning 5"));
    EXPECT_THAT(mp407("type 5:3 cute::SM90_64x64x16_F16F16F16_SS"), ElementsAre("warning 5"));
    EXPECT_THAT(mp407("type 5:3 cute::MMA_Atom args=[{text=cute::SM80_16x8x16_F32F16F16F32_TN}]"), IsEmpty());
}

TEST(MmaHalfAccumulator, CuteAtomByFurtherNamesIsReportedOnce) {
    EXPECT_THAT(mp407("type 5:3 cute::SM80_16x8x16_F16F16F16F16_TN alias=op\n"
                      "type 6:3 cute::MMA_Atom args=[{text=cute::SM80_16x8x16_F16F16F16F16_TN}] alias=atom"),
                ElementsAre("warning 5"));
}

}  // namespace
}  // namespace mp::lint::test
