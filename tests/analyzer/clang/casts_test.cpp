#include <gmock/gmock.h>

#include "tests/analyzer/clang/facts_fixture.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Function only(const std::string& code) {
    const Unit unit = facts_of(code);
    EXPECT_EQ(unit.functions.size(), 1u);
    return unit.functions.empty() ? Function{} : unit.functions.front();
}

TEST(Casts, AnImplicitConstructorIsOneFact) {
    EXPECT_THAT(casts(only("void f(float x) { __half h = x; (void)h; }")),
                ElementsAre("fp32->fp16 implicit init x -> h"));
}

TEST(Casts, ACopyOfAHalfIsNone) {
    EXPECT_THAT(casts(only("__half f(__half x) { __half h = x; __half k(h); h = k; return h; }")), IsEmpty());
}

TEST(Casts, EveryExplicitSpellingIsOneExplicitFact) {
    for (const char* spelled : {"static_cast<__half>(x)", "(__half)x", "__half(x)", "__half{x}"})
        EXPECT_THAT(casts(only("__half f(float x) { return " + std::string(spelled) + "; }")),
                    ElementsAre("fp32->fp16 explicit result x"))
            << spelled;
}

TEST(Casts, DirectInitialisationIsExplicit) {
    EXPECT_THAT(casts(only("void f(double x) { __half h(x); (void)h; }")),
                ElementsAre("fp64->fp16 explicit init x -> h"));
}

TEST(Casts, AReturnedFloatIsNarrowedImplicitly) {
    EXPECT_THAT(casts(only("__half f(float x) { return x; }")), ElementsAre("fp32->fp16 implicit result x"));
}

TEST(Casts, AssignmentOfAFloatIsAStore) {
    const Function f = only("__global__ void f(__half* out, float x) { out[blockIdx.x] = x; }");
    EXPECT_THAT(casts(f), ElementsAre("fp32->fp16 assign store x -> out[blockIdx.x]"));
    EXPECT_TRUE(f.casts[0].output);
}

TEST(Casts, AStoreIntoALocalArrayIsNoOutput) {
    const Function f = only("__global__ void f(float x) { __half a[4]; a[0] = x; }");
    ASSERT_EQ(f.casts.size(), 1u);
    EXPECT_FALSE(f.casts[0].output);
}

TEST(Casts, AStoreThroughALocalPointerFromAParameterIsAnOutput) {
    const Function f =
        only("__global__ void f(__half* out, float x) { __half* o = out + 4; o[1] = __float2half(x); }");
    EXPECT_THAT(casts(f), ElementsAre("fp32->fp16 intrinsic store x -> o[1]"));
    EXPECT_TRUE(f.casts[0].output);
}

TEST(Casts, AStoreIntrinsicIsAStore) {
    const Function f = only("__global__ void f(__half* out, float x) { __stcs(out + 1, (__half)x); }");
    EXPECT_THAT(casts(f), ElementsAre("fp32->fp16 explicit store x -> out + 1"));
    EXPECT_TRUE(f.casts[0].output);
}

TEST(Casts, WideningIsAFactWithItsForm) {
    EXPECT_THAT(casts(only("float f(__half h) { float a = h; return a + (float)h + __half2float(h); }")),
                ElementsAre("fp16->fp32 implicit init h -> a", "fp16->fp32 explicit operand h",
                            "fp16->fp32 intrinsic operand h"));
}

TEST(Casts, FloatAndDoubleAreNoConcernOfOurs) {
    EXPECT_THAT(casts(only("double f(float x) { float y = 1e-8; return x + y + (double)x; }")), IsEmpty());
}

TEST(Casts, ToDoubleIsOneFactNotTwo) {
    EXPECT_THAT(casts(only("double f(__half h) { return (double)(float)h; }")),
                ElementsAre("fp16->fp32 explicit result h"));
}

TEST(Casts, AConstantKeepsItsShortestNumber) {
    EXPECT_THAT(
        casts(only("#define TINY 1e-8f\nvoid f() { __half a = TINY; __half b = -1e9; __half c = 70000; }")),
        ElementsAre("fp32->fp16 implicit init 1e-08 -> a", "fp64->fp16 implicit init -1e+09 -> b",
                    "int32->fp16 implicit init 70000 -> c"));
}

TEST(Casts, AConstantIsSeenThroughALocal) {
    const Function f =
        only("void f() { const float eps = 1e-8f; float big = 1e9f; __half a = eps; __half b = big; }");
    EXPECT_THAT(casts(f),
                ElementsAre("fp32->fp16 implicit init 1e-08 -> a", "fp32->fp16 implicit init 1e+09 -> b"));
}

TEST(Casts, AChangedLocalIsNoConstant) {
    const Function f =
        only("void f(int n) { float e = 1e-8f; for (int i = 0; i < n; ++i) { __half a = e; e = e * 2; } }");
    EXPECT_THAT(casts(f), ElementsAre("fp32->fp16 implicit init e -> a"));
}

TEST(Casts, ARoundTripNamesItsInnerCast) {
    const Function f = only("float f(float g) { return __half2float(__float2half(g)); }");
    ASSERT_EQ(f.casts.size(), 2u);
    EXPECT_EQ(f.casts[1].inner, 0);
    EXPECT_EQ(f.casts[0].inner, kNone);
}

TEST(Casts, ARoundTripThroughALocalUsedOnceNamesItsInnerCast) {
    const Function f =
        only("float f(float g) { const __nv_bfloat16 h = __float2bfloat16(g); return __bfloat162float(h); }");
    ASSERT_EQ(f.casts.size(), 2u);
    EXPECT_EQ(f.casts[1].inner, 0);
}

TEST(Casts, ALocalThatIsAlsoStoredIsNoRoundTrip) {
    const Function f = only(
        "float f(float g, __half* o) { const __half h = __float2half(g); *o = h; return __half2float(h); }");
    ASSERT_EQ(f.casts.size(), 2u);
    EXPECT_EQ(f.casts[1].inner, kNone);
}

TEST(Casts, RoundTripsOfEveryFormAreLinked) {
    for (const char* code : {"float f(float g) { return (float)(__half)g; }",
                             "float f(float g) { return static_cast<float>(static_cast<__half>(g)); }",
                             "float f(float g) { float y = __half(g); return y; }"}) {
        const Function f = only(code);
        ASSERT_EQ(f.casts.size(), 2u) << code;
        EXPECT_EQ(f.casts[1].inner, 0) << code;
    }
}

TEST(Casts, BetweenTwoLowFormatsThroughFloatIsTwoLinkedFacts) {
    const Function f = only("__half f(__nv_bfloat16 b) { return __float2half(__bfloat162float(b)); }");
    EXPECT_THAT(casts(f), ElementsAre("bf16->fp32 intrinsic argument b",
                                      "fp32->fp16 intrinsic result __bfloat162float(b)"));
    EXPECT_EQ(f.casts[1].inner, 0);
}

TEST(Casts, APackedConversionIsOneFactPerValue) {
    EXPECT_THAT(casts(only("__half2 f(float a, float b) { return __floats2half2_rn(a, b); }")),
                ElementsAre("fp32->fp16 intrinsic result a", "fp32->fp16 intrinsic result b"));
    EXPECT_THAT(casts(only("float2 f(__half2 h) { return __half22float2(h); }")),
                ElementsAre("fp16->fp32 intrinsic result h"));
}

TEST(Casts, IntegersIntoHalfAreFactsOutOfHalfAreNot) {
    EXPECT_THAT(
        casts(only("int f(int n) { __half h = n; __half k = __int2half_rn(n); return (int)(float)h; }")),
        ElementsAre("int32->fp16 implicit init n -> h", "int32->fp16 intrinsic init n -> k",
                    "fp16->fp32 explicit result h"));
}

TEST(Casts, Fp8IntrinsicsSayTheirFormatByAnArgument) {
    EXPECT_THAT(
        casts(
            only("unsigned char f(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); }")),
        ElementsAre("fp32->e5m2 intrinsic result x"));
    EXPECT_THAT(casts(only("void f(float x) { __nv_fp8_e4m3 v(x); (void)v; }")),
                ElementsAre("fp32->e4m3 explicit init x -> v"));
}

TEST(Casts, BuiltinHalfTypesConvertInTheLanguage) {
    EXPECT_THAT(casts(only("_Float16 f(float x) { _Float16 h = x; return (_Float16)(h + (_Float16)x); }")),
                ElementsAre("fp32->fp16 implicit init x -> h", "fp32->fp16 explicit operand x"));
}

TEST(Casts, StorageSeenAsHalfIsAReinterpretation) {
    EXPECT_THAT(casts(only("__half* f(int4* p) { return reinterpret_cast<__half*>(p); }")),
                ElementsAre("int32->fp16 reinterpret result p"));
    EXPECT_THAT(
        casts(only(
            "__half2* f(__half* p, void* q) { (void)(__half*)q; return reinterpret_cast<__half2*>(p); }")),
        IsEmpty());
}

TEST(Casts, ATemplateHasTheDtypesOfEachInstantiation) {
    const Unit unit = facts_of(
        "template <class T> __global__ void k(T* o, float x) { o[0] = (T)x; }\n"
        "void go(__half* h, float* f) { k<<<1, 1>>>(h, 1.f); k<<<1, 1>>>(f, 1.f); }");
    EXPECT_THAT(casts(function_named(unit, "k<__half>")), ElementsAre("fp32->fp16 explicit store x -> o[0]"));
    EXPECT_THAT(casts(function_named(unit, "k<float>")), IsEmpty());
}

TEST(Casts, TheDeadBranchOfAConstantHasNoFacts) {
    const Unit unit = facts_of(
        "enum Mode { SUM, MAX };\n"
        "template <Mode M> __half f(float x) { __half r; if (M == SUM) r = x; else r = x * 2;\n"
        "  return M == MAX ? __half(1e9f) : r; }\n"
        "void go() { f<SUM>(1.f); }");
    EXPECT_THAT(casts(function_named(unit, "f<SUM>")), ElementsAre("fp32->fp16 assign store x -> r"));
}

TEST(Casts, OnlyTheLiveCaseOfAConstantSwitchHasFacts) {
    const Unit unit = facts_of(
        "template <int M> void f(float x, __half* o) {\n"
        "  switch (M) { case 0: *o = x; break; case 1: case 2: *o = x + 1; break; default: *o = x + 2; } }\n"
        "template void f<2>(float, __half*); template void f<9>(float, __half*);");
    EXPECT_THAT(casts(function_named(unit, "f<2>")), ElementsAre("fp32->fp16 assign store x + 1 -> *o"));
    EXPECT_THAT(casts(function_named(unit, "f<9>")), ElementsAre("fp32->fp16 assign store x + 2 -> *o"));
}

TEST(Casts, CodeBehindAConstantReturnIsDead) {
    const Unit unit = facts_of(
        "template <bool B> __half f(float x) { if constexpr (B) return __half(1); return x; }\n"
        "void go() { f<true>(1.f); f<false>(1.f); }");
    EXPECT_THAT(casts(function_named(unit, "f<true>")), ElementsAre("int32->fp16 explicit result 1"));
    EXPECT_THAT(casts(function_named(unit, "f<false>")), ElementsAre("fp32->fp16 implicit result x"));
}

TEST(Casts, AMacroBodyIsNamedAMacroArgumentIsNot) {
    const Function f = only(
        "#define NARROW(v) __float2half(v)\n#define SAME(v) v\n"
        "void f(float x) { __half a = NARROW(x); __half b = SAME(__float2half(x)); }");
    ASSERT_EQ(f.casts.size(), 2u);
    EXPECT_EQ(f.casts[0].macro.str(), "NARROW");
    EXPECT_TRUE(f.casts[1].macro.empty());
}

TEST(Casts, AnArgumentKnowsItsCallee) {
    const Function f = only("__device__ void f(__half* p, float x) { atomicAdd(p, (__half)x); }");
    ASSERT_EQ(f.casts.size(), 1u);
    EXPECT_EQ(f.casts[0].purpose, Purpose::argument);
    EXPECT_EQ(f.casts[0].function.str(), "atomicAdd");
}

TEST(Casts, CompoundAssignmentAccumulates) {
    EXPECT_THAT(casts(only("float f(__half h) { float s = 0; s += (float)h; return s; }")),
                ElementsAre("fp16->fp32 explicit accumulate h -> s"));
}

TEST(Casts, AConversionInALoopSaysSo) {
    const Function f = only(
        "void f(float* x, __half* o, int n) { for (int i = 0; i < n; ++i) o[i] = x[i]; *o = x[0];\n"
        "  do { *o = x[1]; } while (0); }");
    ASSERT_EQ(f.casts.size(), 3u);
    EXPECT_TRUE(f.casts[0].in_loop);
    EXPECT_FALSE(f.casts[1].in_loop);
    EXPECT_FALSE(f.casts[2].in_loop);
}

TEST(Casts, UnevaluatedOperandsConvertNothing) {
    EXPECT_THAT(casts(only("int f(float x) { return (int)sizeof(__half(x)); }")), IsEmpty());
}

}  // namespace
}  // namespace mp::lint
