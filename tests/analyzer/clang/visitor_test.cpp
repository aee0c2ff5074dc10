#include <gmock/gmock.h>

#include "analyzer/facts/text.hpp"
#include "tests/analyzer/clang/facts_fixture.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> displays(const Unit& unit) {
    std::vector<std::string> out;
    for (const Function& f : unit.functions) out.push_back(std::string(f.display.str()));
    return out;
}

TEST(Visitor, OnlyConcreteBodiesOfUserCodeAreFunctions) {
    const Unit unit = facts_of(
        "namespace a { inline namespace v1 { void f() {} } namespace { void g() {} } }\n"
        "void declared(); struct S { S() {} void m() {} int x = 0; };\n"
        "template <class T> void never(T) {} template <class T> struct Never { void m() {} };");
    EXPECT_THAT(displays(unit), UnorderedElementsAre("a::f", "a::g", "S::S", "S::m"));
    EXPECT_EQ(unit.coverage.functions, 4u);
    EXPECT_EQ(unit.coverage.uninstantiated, 2u);
}

TEST(Visitor, EveryInstantiationIsAFunctionOfItsOwn) {
    const Unit unit = facts_of(
        "template <class T, int N> __global__ void k(T*) {}\n"
        "template <> __global__ void k<double, 1>(double*) {}\n"
        "template __global__ void k<float, 2>(float*);\n"
        "void go(half* h) { k<half, 4><<<1, 1>>>(h); }");
    EXPECT_THAT(displays(unit), UnorderedElementsAre("k<__half, 4>", "k<double, 1>", "k<float, 2>", "go"));
    const Function& k = function_named(unit, "k<__half, 4>");
    EXPECT_NE(k.usr, function_named(unit, "k<float, 2>").usr);
    EXPECT_EQ(k.name.str(), "k");
    EXPECT_EQ(k.kind, FunctionKind::kernel);
    EXPECT_EQ(k.instantiated.line, 4u);
    EXPECT_EQ(function_named(unit, "k<float, 2>").instantiated.line, 3u);
    EXPECT_EQ(function_named(unit, "k<double, 1>").instantiated.line, 0u);
    ASSERT_EQ(k.template_args.size(), 2u);
    EXPECT_EQ(k.template_args[0].dtype, DType::fp16);
    EXPECT_EQ(k.template_args[1].text.str(), "4");
}

TEST(Visitor, MethodsOfClassTemplatesAreInstantiatedOneByOne) {
    const Unit unit = facts_of(
        "template <class T> struct R { static void add(T* a, T b) { *a = b; } void unused() {} };\n"
        "void go(half* h) { R<half>::add(h, *h); }");
    EXPECT_THAT(displays(unit), UnorderedElementsAre("R<__half>::add", "go"));
    const Function& add = function_named(unit, "R<__half>::add");
    EXPECT_EQ(add.name.str(), "R::add");
    EXPECT_EQ(add.parent_class.str(), "R");
    EXPECT_EQ(add.template_args.at(0).dtype, DType::fp16);
    EXPECT_EQ(function_named(unit, "go").calls.at(0).callee, add.usr);
}

TEST(Visitor, TheOutermostUserPlaceIsWhereATemplateWasChosen) {
    const Unit unit = facts_of(
        "template <class T> __global__ void kernel(T*) {}\n"
        "template <class T> void launcher(T* p) {\n  kernel<<<1, 1>>>(p);\n}\n"
        "void go(half* h) {\n  launcher(h);\n}");
    EXPECT_EQ(function_named(unit, "kernel<__half>").instantiated.line, 6u);
    EXPECT_EQ(function_named(unit, "launcher<__half>").instantiated.line, 6u);
}

TEST(Visitor, KindsFollowTheAttributesTheAuthorWrote) {
    const Unit unit = facts_of(
        "__device__ void d() {} __host__ __device__ void b() {} __global__ void k() {}\n"
        "constexpr int c() { return 1; } void h() { auto l = [] {}; l(); }");
    EXPECT_EQ(function_named(unit, "d").kind, FunctionKind::device);
    EXPECT_EQ(function_named(unit, "b").kind, FunctionKind::host_device);
    EXPECT_EQ(function_named(unit, "k").kind, FunctionKind::kernel);
    EXPECT_EQ(function_named(unit, "c").kind, FunctionKind::host);
    EXPECT_EQ(function_named(unit, "h::(lambda)").kind, FunctionKind::lambda);
}

// A dispatch macro repeats its argument once per dtype: same place, other scalar_t.
TEST(Visitor, LambdasThatAMacroRepeatsAreToldApart) {
    const std::string code =
        "#define DISPATCH(t, ...) do { if (t) { using scalar_t = float; __VA_ARGS__(); } \\\n"
        "  else { using scalar_t = half; __VA_ARGS__(); } } while (0)\n"
        "template <class T> void run(T) {}\n"
        "void f(bool t) { DISPATCH(t, [&] { run(scalar_t(0)); }); }";
    const Unit unit = facts_of(code), again = facts_of(code);
    std::vector<Symbol> lambdas, repeated;
    for (const Function& f : unit.functions)
        if (f.kind == FunctionKind::lambda) lambdas.push_back(f.usr);
    for (const Function& f : again.functions)
        if (f.kind == FunctionKind::lambda) repeated.push_back(f.usr);
    ASSERT_EQ(lambdas.size(), 2u);
    EXPECT_NE(lambdas[0], lambdas[1]);
    EXPECT_EQ(lambdas, repeated);
    const Function& f = function_named(unit, "f");
    ASSERT_EQ(f.calls.size(), 2u);
    EXPECT_EQ(f.calls[0].callee, lambdas[0]);
    EXPECT_EQ(f.calls[1].callee, lambdas[1]);
    EXPECT_EQ(function_named(unit, "run<__half>").returns, DType::unknown);
}

TEST(Visitor, GenericLambdasAreTheirInstantiations) {
    const Unit unit =
        facts_of("void f(half h) { auto g = [](auto x) { float y = x; return y; }; g(h); g(1.f); }");
    std::vector<std::size_t> widened;
    for (const Function& l : unit.functions)
        if (l.kind == FunctionKind::lambda) widened.push_back(l.casts.size());
    EXPECT_THAT(widened, UnorderedElementsAre(1u, 0u));
}

TEST(Visitor, PrivateFunctionsOfTwoFilesHaveTheirOwnSymbols) {
    const Unit unit = facts_of("static void f() {} namespace { void g() {} } void h() {}");
    EXPECT_THAT(std::string(function_named(unit, "f").usr.str()), testing::HasSubstr("snippet.cu"));
    EXPECT_THAT(std::string(function_named(unit, "h").usr.str()),
                testing::Not(testing::HasSubstr("snippet.cu")));
}

std::vector<std::string> unnamed(const std::string& code) {
    std::vector<std::string> names;
    for (const Function& f : facts_of(code).functions)
        if (f.is_unnamed) names.emplace_back(f.display.str());
    return names;
}

TEST(Visitor, APlainFunctionThatNothingElseNamesIsUnnamed) {
    EXPECT_THAT(unnamed("static void f() {} __global__ void k() {} void declared();\nvoid declared() {}\n"
                        "// f k declared\nint main() {}"),
                UnorderedElementsAre("f", "k", "declared"));
}

TEST(Visitor, WhatIsCalledLaunchedOrTakenIsNamed) {
    EXPECT_THAT(unnamed("static void called() {} __global__ void launched() {} void taken() {}\n"
                        "void (*table[])() = {taken};\n"
                        "void go() { called(); launched<<<1, 1>>>(); }"),
                UnorderedElementsAre("go"));
    // In a template that nothing instantiates, in a macro, and by a name that a macro makes.
    EXPECT_THAT(unnamed("void a(int) {} template <class T> void t(T x) { a(x); }"), testing::IsEmpty());
    EXPECT_THAT(unnamed("void c() {}\n#define RUN() c()"), testing::IsEmpty());
    EXPECT_THAT(unnamed("void run_half() {}\n#define RUN(t) run_##t()\nint main() { RUN(half); }"),
                testing::IsEmpty());
}

TEST(Visitor, WhatOtherLanguagesOrClassesNameIsNoUnnamedFunction) {
    EXPECT_THAT(unnamed("extern \"C\" void c() {} struct S { void m() {} };\n"
                        "template <class T> void t(T) {} template void t<half>(half);"),
                testing::IsEmpty());
}

TEST(Visitor, AnnotationsVirtualsAndReturnsAreRecorded) {
    const Unit unit = facts_of(
        "struct B { virtual half f(half x) { return x; } };\n"
        "struct D : B { half f(half x) override { return x; } };\n"
        "[[clang::annotate(\"mp::low_precision\")]] void region() {}");
    EXPECT_EQ(function_named(unit, "B::f").returns, DType::fp16);
    EXPECT_TRUE(function_named(unit, "D::f").is_virtual);
    EXPECT_THAT(function_named(unit, "D::f").overrides, ElementsAre(function_named(unit, "B::f").usr));
    EXPECT_EQ(function_named(unit, "D::f").returned.at(0).param, 0);
    EXPECT_THAT(function_named(unit, "region").annotations, ElementsAre(Symbol("mp::low_precision")));
}

TEST(Visitor, LocalClassesFriendsAndGlobalLambdasAreFound) {
    const Unit unit = facts_of(
        "struct S { friend void befriended(S) {} };\n"
        "auto global = [](float x) { half h = x; return h; };\n"
        "void f() { struct Local { void m() {} }; Local().m(); }");
    EXPECT_THAT(displays(unit), UnorderedElementsAre("befriended", "(lambda)", "f", testing::HasSubstr("m")));
}

TEST(Visitor, PlacesArePhysicalAndHalfOpen) {
    const Unit unit = facts_of("void f(float x) {\n  half h = __float2half(x);\n}");
    const SourceSpan& span = function_named(unit, "f").casts.at(0).span;
    EXPECT_EQ(span.column, 12u);
    EXPECT_EQ(span.end_column, 27u);
    EXPECT_EQ(span.line, span.end_line);
}

TEST(Visitor, FactsPrintAndReadBackEqual) {
    Unit unit = facts_of(
        "template <class T> __global__ void k(T* o, float x) { for (int i = 0; i < 9; ++i) o[i] = (T)x; }\n"
        "void f(half* h, at::Tensor t) { k<<<1, 1>>>(h, 1e-8f); auto y = t.to(torch::kHalf); if (h) "
        "y.exp_(); }");
    unit.path = Symbol("snippet.cu");
    const Result<Unit> back = parse_facts(print_facts(unit));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(print_facts(*back), print_facts(unit));
    EXPECT_TRUE(*back == unit);
}

TEST(Visitor, ParametersThatALambdaCapturesAreNoParametersOfIt) {
    const Unit unit = facts_of(
        "template <class F> void each(int n, F f) { for (int i = 0; i < n; ++i) f(i); }\n"
        "void step(int n, half* w, half* g, float* m, half* o, float scale, float lr) {\n"
        "  each(n, [=](int i) { m[i] = 0.9f * m[i] + 0.1f * (scale * (float)g[i]);\n"
        "    w[i] = (half)((float)w[i] - lr * m[i]); o[i] = (half)(scale * lr * m[i]); });\n"
        "}");
    const Result<Unit> back = parse_facts(print_facts(unit));
    EXPECT_TRUE(back) << back.error().message;
}

}  // namespace
}  // namespace mp::lint
