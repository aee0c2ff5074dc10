#include <gmock/gmock.h>

#include "tests/analyzer/clang/facts_fixture.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Function function(const std::string& code, const std::string& display = "f") {
    return function_named(facts_of(code), display);
}

const Call& call_named(const Function& f, const std::string& name) {
    for (const Call& c : f.calls)
        if (c.name.str() == name) return c;
    static const Call kNothing;
    ADD_FAILURE() << "no call of " << name;
    return kNothing;
}

TEST(Calls, ArgumentsComeBeforeTheCallThatTakesThem) {
    EXPECT_THAT(calls(function("int g(int); int h(int, int);\nvoid f() { h(g(1), g(2)); }")),
                ElementsAre("function g(1)", "function g(2)", "function h(g(1), g(2))"));
}

TEST(Calls, AMethodHasItsReceiverFirst) {
    EXPECT_THAT(calls(function("struct S { void run(int); void f() { run(1); } };\nvoid f(S& s, S* p) { "
                               "s.run(2); p->run(3); }")),
                ElementsAre("method S::run(s, 2)", "method S::run(p, 3)"));
    EXPECT_THAT(calls(function("struct S { void run(int); void f() { run(1); } };", "S::f")),
                ElementsAre("method S::run(this, 1)"));
}

TEST(Calls, AResultIsFollowedThroughALocal) {
    const Function f = function(
        "at::Tensor net(at::Tensor);\nvoid f(at::Tensor x) { auto y = net(x); auto z = y; z.backward(); }");
    EXPECT_EQ(call_named(f, "at::Tensor::backward").args[0].call, 0);
}

TEST(Calls, AReassignedLocalIsItsLatestValue) {
    const Function f = function(
        "at::Tensor a(at::Tensor); at::Tensor b(at::Tensor);\n"
        "void f(at::Tensor x) { auto y = a(x); y = b(y); y.backward(); }");
    EXPECT_EQ(call_named(f, "b").args[0].call, 0);
    EXPECT_EQ(call_named(f, "at::Tensor::backward").args[0].call, 1);
}

TEST(Calls, ALocalWrittenInOneBranchIsUnknown) {
    const Function f = function(
        "at::Tensor a(at::Tensor); at::Tensor b(at::Tensor);\n"
        "void f(at::Tensor x, bool c) { auto y = a(x); if (c) { y = b(y); } y.backward(); }");
    EXPECT_EQ(call_named(f, "at::Tensor::backward").args[0].call, kNone);
}

TEST(Calls, ABranchThatReturnsDoesNotCloudTheOther) {
    const Function f = function(
        "at::Tensor a(at::Tensor); at::Tensor b(at::Tensor);\n"
        "void f(at::Tensor x, bool c) { auto y = a(x); if (c) { y = b(y); return; } y.backward(); }");
    EXPECT_EQ(call_named(f, "at::Tensor::backward").args[0].call, 0);
}

TEST(Calls, ALocalWrittenLaterInTheLoopIsUnknown) {
    const Function f = function(
        "at::Tensor a(at::Tensor); at::Tensor b(at::Tensor);\n"
        "void f(at::Tensor x) { auto y = a(x); for (int i = 0; i < 9; ++i) { y.backward(); y = b(x); } }");
    EXPECT_EQ(call_named(f, "at::Tensor::backward").args[0].call, kNone);
}

TEST(Calls, AnUnchangedParameterIsKnownByItsPosition) {
    const Function f = function(
        "void g(at::Tensor, int*, int*);\n"
        "void f(int* p, at::Tensor x, int* q) { ++q; g(x, p, q); g(x, p + 1, q); }");
    EXPECT_EQ(f.calls[0].args[0].param, 1);
    EXPECT_EQ(f.calls[0].args[1].param, 0);
    EXPECT_EQ(f.calls[0].args[2].param, kNone);
    EXPECT_EQ(f.calls[1].args[1].param, kNone);
}

TEST(Calls, DtypesNamedByArgumentsReachTheResult) {
    for (const char* e :
         {"x.to(torch::kHalf)", "x.to(x.options().dtype(at::kHalf))", "torch::zeros(3, torch::kHalf)",
          "torch::zeros(3, torch::TensorOptions().dtype(torch::kHalf).requires_grad(true))",
          "torch::softmax(x, 1, at::ScalarType::Half)", "x.to(torch::kHalf).clone().view(1)",
          "torch::zeros(3, torch::TensorOptions(torch::kHalf))"}) {
        const Function f = function("void f(at::Tensor x) { " + std::string(e) + "; }");
        ASSERT_FALSE(f.calls.empty()) << e;
        EXPECT_EQ(f.calls.back().result.dtype, DType::fp16) << e;
        EXPECT_EQ(f.calls.back().result.shape, Shape::tensor) << e;
    }
}

TEST(Calls, AnUnnamedDtypeStaysUnknown) {
    for (const char* e : {"x.exp()", "x.to(x.scalar_type())", "torch::zeros(3)", "torch::matmul(x, x)"}) {
        const Function f = function("void f(at::Tensor x) { " + std::string(e) + "; }");
        ASSERT_FALSE(f.calls.empty()) << e;
        EXPECT_EQ(f.calls.back().result.dtype, DType::unknown) << e;
    }
}

TEST(Calls, OptionsAreFollowedThroughALocal) {
    const Function f = function(
        "void f() { auto o = torch::TensorOptions().dtype(torch::kBFloat16); auto t = torch::zeros(3, o); "
        "t.exp_(); }");
    EXPECT_EQ(call_named(f, "at::zeros").result.dtype, DType::bf16);
    EXPECT_EQ(call_named(f, "at::Tensor::exp_").args[0].dtype, DType::bf16);
    EXPECT_EQ(call_named(f, "at::Tensor::exp_").result.dtype, DType::bf16);
}

TEST(Calls, TypeAsTakesTheDtypeOfItsArgument) {
    const Function f =
        function("void f(at::Tensor a, at::Tensor b) { auto h = b.to(at::kHalf); a.type_as(h); }");
    EXPECT_EQ(call_named(f, "at::Tensor::type_as").result.dtype, DType::fp16);
}

TEST(Calls, AModuleCastNamesItsDtype) {
    const Function f = function("void f(torch::nn::Module* m) { m->to(torch::kHalf); }");
    EXPECT_EQ(call_named(f, "torch::nn::Module::to").result.dtype, DType::fp16);
    EXPECT_EQ(call_named(f, "torch::nn::Module::to").args[1].constant.str(), "Half");
}

TEST(Calls, OperatorsOnTensorsAreOps) {
    const Function f =
        function("void f(at::Tensor a, at::Tensor b) { auto c = a + b; c += a; auto d = c * 2; }");
    EXPECT_THAT(calls(f), ElementsAre("op operator+(a, b)", "op operator+=(c, a)", "op operator*(c, 2)"));
    EXPECT_EQ(f.calls[0].op.name(), "add");
    EXPECT_TRUE(f.calls[1].in_place);
    EXPECT_FALSE(f.calls[0].in_place);
}

TEST(Calls, CanonicalOpsAndInPlaceForms) {
    const Function f = function("void f(at::Tensor a) { a.exp(); a.exp_(); }");
    EXPECT_EQ(f.calls[0].op.name(), "exp");
    EXPECT_EQ(f.calls[1].op.name(), "exp");
    EXPECT_FALSE(f.calls[0].in_place);
    EXPECT_TRUE(f.calls[1].in_place);
}

TEST(Calls, ArithmeticOfHalvesIsNoCall) {
    EXPECT_THAT(calls(function("__half f(__half a, __half b) { a += b; return a + b; }")), IsEmpty());
}

TEST(Calls, BookkeepingIsNoCall) {
    EXPECT_THAT(calls(function("long f(at::Tensor x) { return x.size(0); }")), IsEmpty());
    EXPECT_THAT(calls(function("float f(float x) { return sqrtf(x) + __half2float(__float2half(x)); }")),
                IsEmpty());
}

TEST(Calls, EnumeratorsNumbersAndPointersAreConstants) {
    const Function f = function(
        "int f(int n) { const float alpha = 1.f; __half beta = __float2half(0.f);\n"
        "  return cublasScale(n * 2, &alpha, CUDA_R_16F) + cublasScale(64, &beta, CUDA_R_32F) + "
        "cublasScale(1, nullptr, CUDA_R_32F); }");
    EXPECT_THAT(calls(f), ElementsAre("function cublasScale(n * 2, alpha, CUDA_R_16F)",
                                      "function cublasScale(64, beta, CUDA_R_32F)",
                                      "function cublasScale(1, nullptr, CUDA_R_32F)"));
    EXPECT_EQ(f.calls[0].args[1].dtype, DType::fp32);
    EXPECT_EQ(f.calls[0].args[1].shape, Shape::pointer);
    EXPECT_EQ(f.calls[1].args[1].dtype, DType::fp16);
}

TEST(Calls, ConstructorsWithABodyOfTheirOwnAreCalls) {
    EXPECT_THAT(calls(function("struct Plain { int x = 0; };\nstruct Guard { Guard(bool); };\n"
                               "void f() { Plain p; Guard g(true); Guard copy = g; (void)p; }")),
                ElementsAre("constructor Guard::Guard(true)"));
}

TEST(Calls, AKernelLaunchIsAKernelCall) {
    const Function f = function(
        "template <class T> __global__ void k(T* p, int n) { }\nvoid f(__half* p) { k<<<1, 2>>>(p, 3); }");
    EXPECT_THAT(calls(f), ElementsAre("kernel k(p, 3)"));
    ASSERT_EQ(f.calls[0].template_args.size(), 1u);
    EXPECT_EQ(f.calls[0].template_args[0].dtype, DType::fp16);
    EXPECT_EQ(f.calls[0].callee, function_named(facts_of("template <class T> __global__ void k(T* p, int n) "
                                                         "{ }\nvoid f(__half* p) { k<<<1, 2>>>(p, 3); }"),
                                                "k<__half>")
                                     .usr);
}

TEST(Calls, InlineAssemblyIsACallOfItsText) {
    const Function f = function(
        "__device__ void f(float x) { asm volatile(\"mma.sync.f16.f16.f16.f16 %0;\" :: \"f\"(x)); }");
    EXPECT_THAT(calls(f), ElementsAre("assembly asm(mma.sync.f16.f16.f16.f16 %0;, x)"));
}

TEST(Calls, WhatAssemblyWritesIsNoConstant) {
    const Function f = function(
        "__device__ unsigned g(unsigned);\n"
        "__device__ void f() { unsigned x = 0, y = 0; asm(\"mov.u32 %0, %1;\" : \"=r\"(x) : \"r\"(y)); g(x); "
        "g(y); }");
    ASSERT_EQ(f.calls.size(), 3u);
    EXPECT_TRUE(f.calls[1].args[0].constant.empty());
    EXPECT_EQ(f.calls[2].args[0].constant.str(), "0");
}

TEST(Calls, AMacroIsNamedOnlyWhenItsBodySpellsTheCall) {
    const Function f = function(
        "#define ON() at::autocast::set_enabled(true)\n#define BOTH() ON()\n#define CHECK(e) (e)\n"
        "void f() { ON(); BOTH(); CHECK(at::autocast::set_enabled(false)); }");
    EXPECT_THAT(calls(f), ElementsAre("function at::autocast::set_enabled(true)",
                                      "function at::autocast::set_enabled(true)",
                                      "function at::autocast::set_enabled(false)"));
    EXPECT_EQ(f.calls[0].macro.str(), "ON");
    EXPECT_EQ(f.calls[1].macro.str(), "BOTH");
    EXPECT_TRUE(f.calls[2].macro.empty());
}

TEST(Calls, ALambdaArgumentIsAFunctionThatMayRun) {
    const Unit unit = facts_of(
        "void work(at::Tensor);\nvoid f(int* p, at::Tensor x) { auto g = [&](int) { work(x); };\n"
        "  std::for_each(p, p + 1, g); std::for_each(p, p + 1, [&](int) { x.exp(); }); }");
    const Function& f = function_named(unit, "f");
    ASSERT_EQ(f.calls.size(), 2u);
    ASSERT_EQ(f.calls[0].lambdas.size(), 1u);
    ASSERT_EQ(f.calls[1].lambdas.size(), 1u);
    EXPECT_NE(f.calls[0].lambdas[0], f.calls[1].lambdas[0]);
    std::vector<Symbol> bodies;
    for (const Function& g : unit.functions)
        if (g.kind == FunctionKind::lambda) bodies.push_back(g.usr);
    EXPECT_THAT(bodies, testing::UnorderedElementsAre(f.calls[0].lambdas[0], f.calls[1].lambdas[0]));
}

TEST(Calls, ALambdaCalledOnTheSpotIsACallOfIt) {
    const Unit unit = facts_of(
        "void work();\nint f(int t) { return [&] { if (t) return [&] { work(); return 1; }(); "
        "return [&] { work(); return 1; }(); }(); }");
    const Function& f = function_named(unit, "f");
    ASSERT_EQ(f.calls.size(), 1u);
    const Function& outer = function_named(unit, "f::(lambda)");
    EXPECT_EQ(f.calls[0].callee, outer.usr);
    ASSERT_EQ(outer.calls.size(), 2u);
    EXPECT_NE(outer.calls[0].callee, outer.calls[1].callee);
}

TEST(Calls, AFunctionGivenToAThreadMayRunThere) {
    const Unit unit = facts_of("void work() {}\nvoid f() { std::thread t(work); t.join(); }");
    const Call& c = call_named(function_named(unit, "f"), "std::thread::thread");
    EXPECT_THAT(c.lambdas, ElementsAre(function_named(unit, "work").usr));
}

TEST(Calls, RegisteringAFunctionNamesItHoweverItIsGiven) {
    const Unit unit = facts_of(
        "int op(int);\nint op(int x) { return x; }\n"
        "void f(torch::Library& m) {\n"
        "  m.impl(\"op\", &op);\n"
        "  m.impl(\"op\", torch::Carried<decltype(op), op>());\n}");
    const Function& f = function_named(unit, "f");
    ASSERT_EQ(f.calls.size(), 2u);
    for (const Call& c : f.calls) {
        EXPECT_EQ(c.args[1].text.str(), "\"op\"");
        EXPECT_THAT(c.lambdas, ElementsAre(function_named(unit, "op").usr));
    }
}

// A text has at most 80 bytes. A character that fits is kept, and none is cut in two.
TEST(Calls, TextsAreCutBetweenCharacters) {
    const auto text_after = [](std::size_t before) {
        const Unit unit = facts_of("void g(const char*);\nvoid f() { g(\"" + std::string(before - 1, 'a') +
                                   "\u00e9\u00e9 and more\"); }");
        return std::string(call_named(function_named(unit, "f"), "g").args[0].text.str());
    };
    EXPECT_EQ(text_after(79), '"' + std::string(78, 'a'));
    EXPECT_EQ(text_after(78), '"' + std::string(77, 'a') + "\u00e9");
    EXPECT_EQ(text_after(77), '"' + std::string(76, 'a') + "\u00e9");
}

TEST(Calls, ACallThroughAPointerIsUnresolvedButThere) {
    const Function f = function("void f(void (*run)(int)) { run(1); }");
    EXPECT_THAT(calls(f), ElementsAre("function run(1)"));
    EXPECT_TRUE(f.calls[0].callee.empty());
}

TEST(Calls, LibraryReductionsKeepTheirTypes) {
    const Function f = function("float f(c10::Half* p) { return std::accumulate(p, p + 9, c10::Half(0)); }");
    const Call& c = call_named(f, "std::accumulate");
    EXPECT_EQ(c.args[2].dtype, DType::fp16);
    EXPECT_EQ(c.args[2].constant.str(), "0");
    EXPECT_EQ(c.result.dtype, DType::fp16);
}

TEST(Calls, OneFactoryCallIsTheConstructorItRuns) {
    EXPECT_THAT(calls(function("struct Guard { Guard(bool); ~Guard(); };\nvoid f(bool b) { auto g = "
                               "std::make_unique<Guard>(b); }")),
                ElementsAre("constructor Guard::Guard(b)", "destructor Guard::~Guard(g)"));
}

}  // namespace
}  // namespace mp::lint
