#include "analyzer/clang/extract.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "analyzer/clang/command_line.hpp"
#include "analyzer/facts/text.hpp"
#include "tests/analyzer/clang/scratch.hpp"

namespace mp::lint {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Extract : public testing::Test {
protected:
    Unit run(const std::string& file, const std::string& flags = "", ExtractOptions options = {}) {
        options.cuda = CudaHeaders::stubs;
        auto words = split_command("clang++ " + flags + " -c " + file);
        return extract(make_invocation({.file = file, .directory = dir.path(), .arguments = words}, options),
                       options);
    }

    static const Function* find(const Unit& unit, const std::string& name) {
        const auto at = std::find_if(unit.functions.begin(), unit.functions.end(),
                                     [&](const auto& f) { return f.name.str() == name; });
        return at == unit.functions.end() ? nullptr : &*at;
    }

    static std::vector<std::string> texts(const std::vector<Symbol>& symbols) {
        std::vector<std::string> all;
        for (const auto symbol : symbols) all.emplace_back(symbol.str());
        return all;
    }

    bool depends_on(const Unit& unit, const std::string& name) {
        return std::any_of(unit.dependencies.begin(), unit.dependencies.end(),
                           [&](const auto& d) { return d.path.str() == dir.path() + "/" + name; });
    }

    Scratch dir;
};

constexpr const char* kKernel = R"(#include <cuda_fp16.h>
__global__ void narrow(__half* out, const float* in) { out[threadIdx.x] = __float2half(in[threadIdx.x]); }
void launch(__half* out, const float* in) { narrow<<<1, 32>>>(out, in); }
)";

// Only code of the same program launches a kernel, so a header that declares one is no interface for others.
TEST_F(Extract, AKernelOfAHeaderIsUnnamedIfNothingLaunchesIt) {
    const auto unnamed = [&](const std::string& header, const std::string& code) {
        dir.write("k.cuh", header);
        dir.write("a.cu", "#include \"k.cuh\"\n" + code);
        std::vector<std::string> names;
        for (const Function& f : run("a.cu").functions)
            if (f.is_unnamed) names.emplace_back(f.name.str());
        return names;
    };
    EXPECT_THAT(unnamed("__global__ void k();\nvoid f();\n", "__global__ void k() {}\nvoid f() {}\n"),
                ElementsAre("k"));
    EXPECT_THAT(unnamed("__global__ void k() {}\ninline void f() {}\n", ""), ElementsAre("k"));
    EXPECT_THAT(unnamed("__global__ void k() {}\n", "int main() { k<<<1, 1>>>(); }\n"), IsEmpty());
    EXPECT_THAT(unnamed("__global__ void k() {}\n#define RUN() k<<<1, 1>>>()\n", ""), IsEmpty());
}

// torch's builder removes the operators; the -U that brings them back stands in a setup.py.
TEST_F(Extract, ReadsOperatorsOfHalfThatAFlagRemoves) {
    dir.write("a.cu", R"(#include <cuda_fp16.h>
__global__ void sum(__half* out, const __half* in, int n) {
    __half acc = in[0];
    for (int i = 1; i < n; ++i) acc = acc + in[i];
    *out = acc;
}
)");
    const Unit unit = run("a.cu", "-D__CUDA_NO_HALF_OPERATORS__");
    EXPECT_EQ(unit.coverage.errors, 0u);
    const Function* sum = find(unit, "sum");
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(sum->accumulations.size(), 1u) << print_facts(unit);
}

TEST_F(Extract, ReadsAKernelWithOurHeaders) {
    dir.write("a.cu", kKernel);
    const Unit unit = run("a.cu");
    EXPECT_EQ(unit.state, UnitState::ok) << print_facts(unit);
    EXPECT_EQ(unit.headers.str(), "stubs");
    EXPECT_EQ(unit.path.str(), dir.path() + "/a.cu");
    EXPECT_THAT(texts(unit.passes), ElementsAre("host"));
    ASSERT_TRUE(find(unit, "narrow"));
    EXPECT_EQ(find(unit, "narrow")->kind, FunctionKind::kernel);
    EXPECT_EQ(find(unit, "narrow")->span.file.str(), dir.path() + "/a.cu");
    EXPECT_FALSE(find(unit, "narrow")->casts.empty());
}

TEST_F(Extract, RecordsFlagsAndEveryFileItRead) {
    dir.write("a.cu", "#include \"sub/b.h\"\nint f() { return B; }");
    dir.write("sub/b.h", "#define B 1\n");
    const Unit unit = run("a.cu", "-ffast-math");
    EXPECT_THAT(texts(unit.flags), ElementsAre("-ffast-math"));
    EXPECT_TRUE(depends_on(unit, "a.cu"));
    ASSERT_TRUE(depends_on(unit, "sub/b.h"));
    for (const auto& file : unit.dependencies) EXPECT_NE(file.hash, 0u) << file.path.str();
}

TEST_F(Extract, AnyChangeOfContentChangesTheHash) {
    const auto hash = [&](const std::string& text) {
        dir.write("a.cpp", text);
        return run("a.cpp").dependencies.at(0).hash;
    };
    EXPECT_NE(hash("int a;"), hash("int b;"));
    EXPECT_EQ(hash("int a;"), hash("int a;"));
}

// --- passes ----------------------------------------------------------------------------------------

constexpr const char* kDeviceOnly = R"(#include <cuda_fp16.h>
__device__ float host_sees(float x);
__device__ float both(float x) {
#if CONDITION
    __half narrowed = __float2half(x);
    return __half2float(narrowed);
#else
    return host_sees(x);
#endif
}
)";

std::string with_condition(std::string condition) {
    std::string text = kDeviceOnly;
    return text.replace(text.find("CONDITION"), 9, condition);
}

TEST_F(Extract, MakesADevicePassOnlyWhenUserCodeTestsTheArchitecture) {
    for (const std::string condition :
         {"__CUDA_ARCH__ >= 530", "defined(__CUDA_ARCH__) && 1", "__CUDA_ARCH__"}) {
        dir.write("a.cu", with_condition(condition));
        const Unit unit = run("a.cu");
        EXPECT_THAT(texts(unit.passes), ElementsAre("host", "device sm_80")) << condition;
        ASSERT_TRUE(find(unit, "both"));
        EXPECT_EQ(find(unit, "both")->casts.size(), 2u) << "of the device: " << condition;
        EXPECT_THAT(find(unit, "both")->calls, Contains(testing::Field(&Call::name, Symbol("host_sees"))));
    }
    dir.write("a.cu", with_condition("MY__CUDA_ARCH__ >= 1  /* not it */"));
    EXPECT_THAT(texts(run("a.cu").passes), ElementsAre("host"));
}

TEST_F(Extract, SeesATestBehindAMacroOrInAHeaderOfTheProject) {
    dir.write("common.h", "#define HAS_HALF (__CUDA_ARCH__ >= 530)\n");
    dir.write("a.cu", "#include \"common.h\"\n" + with_condition("HAS_HALF"));
    EXPECT_EQ(run("a.cu").passes.size(), 2u);
    dir.write("a.cu", "#ifdef __CUDA_ARCH__\n#endif\nvoid f() {}");
    EXPECT_EQ(run("a.cu").passes.size(), 2u);
}

TEST_F(Extract, TestsInSystemHeadersAskForNoDevicePass) {
    dir.write("sys/lib.h", "#pragma once\n#if __CUDA_ARCH__ >= 700\n#endif\n");
    dir.write("a.cu", "#include <lib.h>\nvoid f() {}");
    EXPECT_EQ(run("a.cu", "-isystem sys").passes.size(), 1u);
}

TEST_F(Extract, HostCodeNeverHasADevicePass) {
    dir.write("a.cpp", "#ifdef __CUDA_ARCH__\n#endif\nvoid f() {}");
    EXPECT_EQ(run("a.cpp").passes.size(), 1u);
}

// --- user code -------------------------------------------------------------------------------------

// --- incomplete and old installations ---

constexpr const char* kExtension = R"(#include <ATen/ATen.h>
#include <cuda_bf16.h>
at::Tensor halved(const at::Tensor& x) { return x.to(at::kHalf); }
__nv_bfloat16 narrow(float x) { return __float2bfloat16(x); }
)";

class Installations : public Extract {
protected:
    void SetUp() override {
        dir.write("a.cpp", kExtension);
        dir.write("a.cu", std::string(kExtension) + kKernel);
    }

    Unit run_with(const std::string& file, const ExtractOptions& options) {
        const CompileCommand command{.file = file,
                                     .directory = dir.path(),
                                     .arguments = split_command("clang++ -std=c++17 -c " + file)};
        return extract(make_invocation(command, options), options);
    }

    std::string facts(const std::string& file, const ExtractOptions& options) {
        Unit unit = run_with(file, options);
        EXPECT_EQ(unit.state, UnitState::ok) << print_facts(unit);
        unit.dependencies.clear();
        unit.headers = {};
        return print_facts(unit);
    }

    ExtractOptions with_toolkit(const std::string& name) {
        environment_ = dir.path() + "/" + name;
        ::setenv("CUDA_PATH", environment_.c_str(), 1);
        return {.torch = TorchHeaders::stubs};
    }

    void TearDown() override { ::unsetenv("CUDA_PATH"); }

    const ExtractOptions ours_{.cuda = CudaHeaders::stubs, .torch = TorchHeaders::stubs};
    std::string environment_;
};

TEST_F(Installations, AnIncompleteToolkitGivesTheFactsOfOurHeaders) {
    for (const auto* name : {"cuda_runtime.h", "cuda_runtime_api.h"})
        dir.write(std::string("kit/include/") + name, "#define CUDART_VERSION 9000\n");
    for (const auto* file : {"a.cu", "a.cpp"})
        EXPECT_EQ(facts(file, with_toolkit("kit")), facts(file, ours_)) << file;
    const Unit unit = run_with("a.cu", with_toolkit("kit"));
    EXPECT_EQ(unit.headers.str(), "stubs instead of toolkit 9.0");
    EXPECT_TRUE(depends_on(unit, "a.cu"));
}

TEST_F(Installations, AnOldOrIncompleteLibtorchGivesTheFactsOfOurHeaders) {
    dir.write("old/ATen/ATen.h", "namespace at { struct Tensor { int dim() const; }; }\n");
    dir.write("part/ATen/ATen.h", "#include <c10/core/Gone.h>\n");
    for (const std::string kind : {"old", "part"}) {
        const CompileCommand command{
            .file = "a.cpp",
            .directory = dir.path(),
            .arguments = split_command("clang++ -std=c++17 -I" + kind + " -c a.cpp")};
        const ExtractOptions options{.cuda = CudaHeaders::stubs};
        Unit unit = extract(make_invocation(command, options), options);
        EXPECT_EQ(unit.state, UnitState::ok) << print_facts(unit);
        EXPECT_TRUE(depends_on(unit, kind + "/ATen/ATen.h")) << "a repaired header must invalidate the facts";
        unit.dependencies.clear();
        EXPECT_EQ(print_facts(unit), facts("a.cpp", ours_)) << kind;
    }
}

TEST_F(Installations, ChosenHeadersAreTheOnlyOnes) {
    dir.write("lib/include/ATen/ATen.h", "namespace at { struct Tensor {}; }\n");
    const ExtractOptions options{
        .cuda = CudaHeaders::stubs, .torch = TorchHeaders::directory, .torch_path = dir.path() + "/lib"};
    const Unit unit = run_with("a.cpp", options);
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_TRUE(depends_on(unit, "lib/include/ATen/ATen.h"));
}

TEST_F(Extract, ALibtorchOfTheSystemIsHiddenBehindOurHeaders) {
    dir.write("a.cpp",
              "#if __has_include(<torch/csrc/jit/api/module.h>)\nint found() { return 1; }\n#endif\n");
    EXPECT_EQ(find(run("a.cpp", "", {.torch = TorchHeaders::stubs}), "found"), nullptr);
}

TEST_F(Extract, AHeaderWithKernelsIsCuda) {
    dir.write("a.h", kKernel);
    dir.write("b.h", "inline int f() { return 1; }\n");
    const ExtractOptions options{.cuda = CudaHeaders::stubs};
    const Unit kernels = extract(make_invocation(default_command(dir.path() + "/a.h", {}), options), options);
    EXPECT_EQ(kernels.language, Language::cuda);
    EXPECT_EQ(kernels.state, UnitState::ok) << print_facts(kernels);
    EXPECT_EQ(make_invocation(default_command(dir.path() + "/b.h", {}), options).language, Language::cpp);
}

TEST_F(Extract, AMissingHeaderHidesNoOtherFunction) {
    dir.write("a.cu", std::string("#include <cutlass/absent.h>\n#include \"gone.h\"\n") + kKernel + R"(
absent::Plan plan_of(absent::Shape s) { return s.plan(); }
template <typename T> __global__ void copy(T* out, const float* in, absent::Layout layout) {
  out[layout.at(threadIdx.x)] = T(in[threadIdx.x]);
}
template <typename T> __global__ void sum(T* out, const T* in, int n) {
  T s = T(0.f);
  for (int i = 0; i < n; ++i) s += in[i];
  *out = s;
}
struct Job { absent::Plan plan; void go(__half* o, const __half* i) { sum<__half><<<1, 32>>>(o, i, 9); } };
)");
    const Unit unit = run("a.cu");
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_NE(find(unit, "narrow"), nullptr);
    EXPECT_NE(find(unit, "launch"), nullptr);
    const Function* sum = find(unit, "sum");
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(sum->accumulations.size(), 1u);
}

TEST_F(Extract, SkippingSystemBodiesChangesNoFact) {
    dir.write("sys/lib.h", R"(#include <cuda_fp16.h>
template <typename T> __device__ T twice(T x) { return x + x; }
inline __device__ auto deduced(float x) { return __float2half(x); }
constexpr int four() { return 4; }
)");
    dir.write("a.cu", R"(#include <lib.h>
__global__ void k(float* p) {
    for (int i = 0; i < four(); ++i) p[i] = twice(__half2float(deduced(p[i])));
}
)");
    const Unit fast = run("a.cu", "-isystem sys");
    const Unit exact = run("a.cu", "-isystem sys", {.exact = true});
    EXPECT_EQ(fast.state, UnitState::ok) << print_facts(fast);
    EXPECT_EQ(print_facts(fast), print_facts(exact));
}

TEST_F(Extract, SystemBodiesAreReadOnlyInExactMode) {
    dir.write("sys/lib.h", "inline void f() { no_such_thing; }\n");
    dir.write("a.cpp", "#include <lib.h>\nvoid g() { f(); }");
    EXPECT_EQ(run("a.cpp", "-isystem sys").coverage.errors, 0u);
    EXPECT_EQ(run("a.cpp", "-isystem sys", {.exact = true}).coverage.errors, 1u);
}

TEST_F(Extract, HeadersOutsideTheProjectAreNotUserCode) {
    dir.write("vendor/lib.h", "inline float vendor(float x) { return x; }\n");
    dir.write("project/own.h", "inline float own(float x) { return x; }\n");
    dir.write("project/a.cpp",
              "#include \"own.h\"\n#include \"../vendor/lib.h\"\nfloat f() { return own(vendor(1)); }");
    const Unit all = run("project/a.cpp");
    EXPECT_TRUE(find(all, "vendor"));
    const Unit rooted = run("project/a.cpp", "", {.project_root = dir.path() + "/project"});
    EXPECT_FALSE(find(rooted, "vendor"));
    EXPECT_TRUE(find(rooted, "own"));
    EXPECT_EQ(find(rooted, "f")->span, find(all, "f")->span);
    EXPECT_EQ(find(rooted, "own")->span, find(all, "own")->span);
}

TEST_F(Extract, OneFileHasOneNameInEveryUnit) {
    dir.write("include/own.h", "inline float own(float x) { return x; }\n");
    dir.write("src/a.cpp", "#include \"../include/own.h\"\nfloat f() { return own(1); }");
    dir.write("src/b.cpp", "#include <own.h>\nfloat f() { return own(1); }");
    EXPECT_EQ(find(run("src/a.cpp"), "own")->span.file.str(), dir.path() + "/include/own.h");
    EXPECT_EQ(find(run("src/b.cpp", "-Iinclude"), "own")->span.file.str(), dir.path() + "/include/own.h");
}

// --- broken and hostile sources --------------------------------------------------------------------

TEST_F(Extract, MissingHeadersAreNamedAndTheRestIsAnalysed) {
    dir.write("a.cpp", "#include <no/such/header.h>\n#include \"gone.hpp\"\nfloat f(float x) { return x; }");
    const Unit unit = run("a.cpp");
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_THAT(texts(unit.coverage.missing_headers), ElementsAre("gone.hpp", "no/such/header.h"));
    EXPECT_TRUE(find(unit, "f"));
}

TEST_F(Extract, APtxRegisterThatOnlyNvccKnowsIsNoError) {
    dir.write("a.cu",
              "#include <cuda_runtime.h>\n#ifdef __CUDA_ARCH__\n#endif\n"
              "__device__ unsigned lane() {\n"
              "    unsigned r;\n    asm volatile(\"mov.u32 %0, %laneid;\" : \"=r\"(r));\n"
              "    return r;\n}\n__global__ void k(unsigned* out) { *out = lane(); }\n");
    const Unit unit = run("a.cu");
    EXPECT_EQ(unit.state, UnitState::ok);
    EXPECT_EQ(unit.coverage.benign_errors, 1u);
    EXPECT_TRUE(find(unit, "lane"));
}

TEST_F(Extract, ErrorsAreCountedOnceAndTheFirstFiveQuoted) {
    std::string text = "#ifdef __CUDA_ARCH__\n#endif\nvoid f() {}\n";
    for (int i = 0; i < 9; ++i)
        text += "unknown_type_" + std::to_string(i) + " v" + std::to_string(i) + ";\n";
    dir.write("a.cu", text);
    const Unit unit = run("a.cu");
    EXPECT_EQ(unit.passes.size(), 2u) << "both passes meet the same errors";
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_EQ(unit.coverage.errors, 9u);
    ASSERT_EQ(unit.coverage.messages.size(), 5u);
    EXPECT_THAT(std::string(unit.coverage.messages[0].str()), HasSubstr("a.cu:4:1: unknown type name"));
}

TEST_F(Extract, AFatalErrorDoesNotHideTheRest) {
    dir.write("a.cpp",
              "template <int N> struct S { static constexpr int v = S<N + 1>::v; };\n"
              "static_assert(S<0>::v);\n"
              "template <typename T> T after(T x) { return x + x; }\n"
              "float use(float x) { return after(x); }\n"
              "not_a_type unseen;\n");
    const Unit unit = run("a.cpp");
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_TRUE(find(unit, "after")) << "templates are instantiated after it";
    EXPECT_THAT(texts(unit.coverage.messages), Contains(HasSubstr("a.cpp:5:1: unknown type name")));
}

TEST_F(Extract, AValueMadeOfWhatIsNotDeclaredIsNotKnown) {
    dir.write("a.cpp",
              "struct S { S(int, int); };\nvoid use(const S&, float);\n"
              "void f(int n) {\n  S s(missing(n), 1);\n  S& alias(missing(4));\n  const S& r(missing(2));\n"
              "  float x(missing(n));\n  for (int i = 0; i < n; ++i) use(s, x);\n  use(r, x);\n"
              "  float* p(missing(3));\n  *p = x;\n}\n");
    const Unit unit = run("a.cpp");
    EXPECT_EQ(unit.state, UnitState::partial);
    const Function* f = find(unit, "f");
    ASSERT_TRUE(f);
    EXPECT_GE(f->calls.size(), 2u) << "what is around it is read";
}

TEST_F(Extract, SomethingThatIsNotCodeFails) {
    dir.write("a.cpp", "Dear reader,\n\nthis is a letter.\n");
    const Unit unit = run("a.cpp");
    EXPECT_EQ(unit.state, UnitState::failed);
    EXPECT_GT(unit.coverage.errors, 0u);
}

TEST_F(Extract, AnEmptyFileIsFine) {
    dir.write("a.cu", "");
    EXPECT_EQ(run("a.cu").state, UnitState::ok);
}

TEST_F(Extract, OnlyRegularFilesAreOpened) {
    ASSERT_EQ(mkfifo((dir.path() + "/pipe.h").c_str(), 0600), 0);
    ASSERT_EQ(mkfifo((dir.path() + "/pipe.cpp").c_str(), 0600), 0);
    std::filesystem::create_directory(dir.path() + "/dir.cpp");
    dir.write("a.cpp",
              "#include \"/dev/zero\"\n#include \"pipe.h\"\n#include \"/\"\nfloat f(float x) { return x; }");
    const Unit unit = run("a.cpp");
    EXPECT_TRUE(find(unit, "f"));
    EXPECT_THAT(texts(unit.coverage.missing_headers), Contains("/dev/zero"));
    EXPECT_THAT(texts(unit.coverage.missing_headers), Contains("pipe.h"));
    for (const char* file : {"pipe.cpp", "dir.cpp", "/dev/zero", "absent.cpp"}) {
        const Unit refused = run(file);
        EXPECT_EQ(refused.state, UnitState::failed) << file;
        ASSERT_FALSE(refused.coverage.messages.empty()) << file;
    }
}

TEST_F(Extract, HugeFilesAreRefused) {
    dir.write("huge.h", "");
    std::filesystem::resize_file(dir.path() + "/huge.h", 65u << 20);
    dir.write("a.cpp", "#include \"huge.h\"\nfloat f(float x) { return x; }");
    const Unit unit = run("a.cpp");
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_THAT(texts(unit.coverage.messages), ElementsAre(HasSubstr("huge.h")));
    EXPECT_TRUE(find(unit, "f"));
}

TEST_F(Extract, WritesNothingAndSaysNothing) {
    dir.write("a.cu", std::string(kKernel) + "broken;\n");
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    run("a.cu", "-o a.o -MD -MF a.d -save-temps -ftime-trace=t.json --serialize-diagnostics a.dia -E");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
        names.push_back(entry.path().filename());
    EXPECT_THAT(names, ElementsAre("a.cu"));
}

TEST_F(Extract, DeepExpressionsDoNotExhaustTheStack) {
    std::string sum = "a";
    for (int i = 0; i < 20'000; ++i) sum += "+a";
    dir.write("a.cpp", "float f(float a) { return " + sum + "; }\n");
    EXPECT_TRUE(find(run("a.cpp"), "f"));
}

TEST(ExtractorVersion, NamesTheCompilerAndIsStable) {
    EXPECT_THAT(extractor_version(), HasSubstr("19."));
    EXPECT_EQ(extractor_version(), extractor_version());
}

}  // namespace
}  // namespace mp::lint
