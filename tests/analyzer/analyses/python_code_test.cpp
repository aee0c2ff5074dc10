#include "analyzer/analyses/python_code.hpp"

#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

TEST(PythonCode, TestsAndBenchmarksAreKnownByTheirPath) {
    for (const std::string_view path :
         {"/p/tests/a.py", "/p/test/x/a.py", "/p/test_a.py", "/p/a_test.py", "tests/a.py", "/p/conftest.py",
          "/p/testing/a.py", "/p/test_a.cu", "/p/a_test.cpp", "/p/unit_tests/a.py",
          "/p/func_test_attention.py", "/p/sanity_check.py", "/p/model_checks.py", "src/tester.h",
          "/p/test_train.py"})
        EXPECT_EQ(code_kind(path), CodeKind::test) << path;
    for (const std::string_view path :
         {"/p/benchmarks/a.py", "/p/bench_a.py", "scripts/perf/a.py", "/p/benchmark_a.cu", "/p/benchmark.py",
          "bench/a.py", "/p/bench.py", "/p/profile_step.py", "/p/ab_benchmark.py", "/p/baseline/spmm/a.cuh",
          "examples/cpp/a.cu", "src/baseline.cu", "src/baseline_impl.cu"})
        EXPECT_EQ(code_kind(path), CodeKind::benchmark) << path;
    for (const std::string_view path :
         {"/p/3rdparty/cutlass/a.h", "third_party/a.cu", "/p/vendor/x/a.py",
          "flash-attention-2.8.0/flash_attn/ref.py", "deps/cub-v1.17/block.cuh", "/p/build/lib/net/train.py",
          "build/lib.linux-x86_64-cpython-312/net/train.py"})
        EXPECT_EQ(code_kind(path), CodeKind::vendored) << path;
    for (const std::string_view path :
         {"/p/archive/train.py", "deprecated/a.ipynb", "backup/src/a.cu",
          "/p/records/2024-12-04_ValueEmbed/train.py", "runs/20241204/a.py", "2024_12_04/a.cu",
          "old/train.py", "/p/old_mains/a.py", "models_old/a.cu", "train_old.py", "old_train.ipynb"})
        EXPECT_EQ(code_kind(path), CodeKind::retired) << path;
    for (const std::string_view path : {"/p/latest/a.py",
                                        "/p/testdata/a.py",
                                        "/p/contest.py",
                                        "/p/train.py",
                                        "kit-2/train.py",
                                        "gpt-2.py",
                                        "archives.py",
                                        "older/threshold.py",
                                        "fold.py",
                                        "2024-12-04.py",
                                        "2024-13-04/train.py",
                                        "20241204123456/train.py",
                                        "12-04-2024/train.py",
                                        "archiver/train.py",
                                        "release-notes/train.py",
                                        "a-1./train.py",
                                        "2.0/train.py",
                                        "build/train.py",
                                        "/p/build/library/train.py",
                                        "rebuild/lib/train.py",
                                        "examples/train.py",
                                        "baselines/a.ipynb",
                                        "checkpoint.py",
                                        "test.py",
                                        "train_and_test_all.py",
                                        "main_check.py",
                                        "baseline_train.py"})
        EXPECT_EQ(code_kind(path), CodeKind::product) << path;
}

TEST(PythonCode, SeverityIsLowerThere) {
    EXPECT_EQ(severity_in(CodeKind::test, Severity::error), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::test, Severity::warning), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::benchmark, Severity::error), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::benchmark, Severity::warning), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::vendored, Severity::error), Severity::note);
    EXPECT_EQ(severity_in(CodeKind::product, Severity::error), Severity::error);
}

TEST(PythonCode, FoldersAboveTheProjectDoNotCount) {
    const Program program = Program::link({});
    const Policies policies;
    const RuleContext of_system{.program = program, .policies = policies};
    const RuleContext of_project{.program = program, .policies = policies, .root = "/src/test/p"};
    const Symbol file("/src/test/p/train.py");
    EXPECT_EQ(code_kind(of_system, file), CodeKind::test);
    EXPECT_EQ(code_kind(of_project, file), CodeKind::product);
}

TEST(PythonCode, CopiesOfLibrariesAreKnownByTheirPlace) {
    const Program program = Program::link({});
    const Policies policies;
    const RuleContext context{.program = program, .policies = policies, .root = "/src/p"};
    const auto library = [&](std::string_view path) { return copied_library(context, Symbol(path)); };
    EXPECT_EQ(library("/src/p/model/llava/train/train.py"), "llava");
    EXPECT_EQ(library("/src/p/transformers/models/t5/modeling_t5.py"), "transformers");
    EXPECT_EQ(library("/src/p/external_code/src/transformers/trainer.py"), "transformers");
    EXPECT_EQ(library("/src/p/swap/apex/csrc/mlp_cuda.cu"), "apex");
    EXPECT_EQ(library("/src/p/csrc/mlp_cuda.cu"), "");
    EXPECT_EQ(library("/src/p/transformers/src/transformers/models/t5/modeling_t5.py"), "");
    EXPECT_EQ(library("/src/p/fairseq/fairseq/models/a.py"), "");
    EXPECT_EQ(library("/src/p/ext/exllama/cuda_func/q4_matmul.cu"), "exllama");
    EXPECT_EQ(library("/src/p/server/exllama_kernels/exllama_kernels/cu_compat.cuh"), "exllama_kernels");
    EXPECT_EQ(library("/src/p/server/exllamav2_kernels/exllamav2_kernels/cuda/q_gemm.cu"),
              "exllamav2_kernels");
    EXPECT_EQ(library("/src/p/ext/exllamav2/cuda/q_gemm.cu"), "exllamav2");
    EXPECT_EQ(library("/src/p/exllamav2/exllamav2_ext/cuda/q_gemm.cu"), "") << "its own repository";
    // The library itself, a model of the same name in another library, and folders that only share the name.
    EXPECT_EQ(library("/src/p/llava/train/train.py"), "");
    EXPECT_EQ(library("/src/p/src/transformers/models/t5/modeling_t5.py"), "");
    EXPECT_EQ(library("/src/p/src/transformers/models/llava/modeling_llava.py"), "");
    EXPECT_EQ(library("/src/p/mytransformers/models/a.py"), "");
    EXPECT_EQ(library("/src/p/nets/transformers/encoder.py"), "");
    EXPECT_EQ(library("/elsewhere/model/llava/train/train.py"), "");
    EXPECT_EQ(code_kind(context, Symbol("/src/p/model/llava/train/train.py")), CodeKind::vendored);
}

TEST(PythonCode, CopiesWithNamesOfTheirOwnAreKnownByTheirFiles) {
    const auto library = [](const std::string& folder, std::string_view path) {
        std::vector<Unit> units;
        for (const std::string file :
             {"train/train.py", "mm_utils.py", "conversation.py", "model/builder.py"}) {
            Unit unit;
            unit.path = Symbol(folder + file);
            unit.language = Language::python;
            units.push_back(std::move(unit));
        }
        const Program program = Program::link(std::move(units));
        const Policies policies;
        const RuleContext context{.program = program, .policies = policies, .root = "/src/p"};
        return std::string(copied_library(context, Symbol(path)));
    };
    EXPECT_EQ(library("/src/p/model/univi/", "/src/p/model/univi/train/train.py"), "llava");
    EXPECT_EQ(library("/src/p/model/univi/", "/src/p/model/other/train/train.py"), "");
    // A project that grew from the library and has another name is not a copy inside of another one.
    EXPECT_EQ(library("/src/p/univi/", "/src/p/univi/train/train.py"), "");
}

TEST(PythonCode, ACheckoutOfALibraryIsACopyInsideAProgram) {
    constexpr std::string_view kFile = "/src/p/transformers/src/transformers/models/t5/modeling_t5.py";
    const auto library = [&](std::string_view beside) {
        std::vector<Unit> units(2);
        units[0].path = Symbol(kFile);
        units[1].path = Symbol(beside);
        const Program program = Program::link(std::move(units));
        const Policies policies;
        const RuleContext context{.program = program, .policies = policies, .root = "/src/p"};
        return std::string(copied_library(context, Symbol(kFile)));
    };
    EXPECT_EQ(library("/src/p/train_t5.py"), "transformers");
    EXPECT_EQ(library("/src/p/diffusers/src/diffusers/training_utils.py"), "");
    EXPECT_EQ(library("/src/p/transformers/setup.py"), "");
}

TEST(PythonCode, EveryRuleReportsLowerInFunctionsThatMeasure) {
    const auto named = [](const std::string& name) {
        return lint("MP411",
                    {"unit a.py language=python\n  func 1:5 a." + name +
                     " kind=python\n    call 5:3 torch.Tensor.sum kind=method op=sum args=[{tensor name=x} "
                     "{fp16 dtype constant=torch.float16}]\n"});
    };
    EXPECT_THAT(named("profile"), ElementsAre("note 5"));
    EXPECT_THAT(named("benchmark_sum"), ElementsAre("note 5"));
    EXPECT_THAT(named("profiler"), ElementsAre("error 5"));
}

TEST(PythonCode, EveryRuleReportsLowerInTests) {
    const std::string sum =
        " language=python\n  func 1:5 a.f kind=python\n"
        "    call 5:3 torch.Tensor.sum kind=method op=sum args=[{tensor name=x} {fp16 dtype "
        "constant=torch.float16}]\n";
    EXPECT_THAT(lint("MP411", {"unit a.py" + sum}), ElementsAre("error 5"));
    EXPECT_THAT(lint("MP411", {"unit tests/a.py" + sum}), ElementsAre("note 5"));
}

TEST(PythonCode, CodeThatDescribesShapesHasNoFindings) {
    const auto summed = [](const std::string& annotation) {
        return lint("MP411",
                    {"unit a.py language=python\n  func 1:5 a.f kind=python annotations=[" + annotation +
                     "]\n    call 5:3 torch.Tensor.sum kind=method op=sum args=[{tensor name=x} {fp16 dtype "
                     "constant=torch.float16}]\n"});
    };
    EXPECT_THAT(summed("\"torch.library.register_fake('a::f')\""), IsEmpty());
    EXPECT_THAT(summed("\"torch.library.impl(a.lib, 'f', 'Meta')\""), IsEmpty());
    EXPECT_THAT(summed("a.op.register_fake"), IsEmpty());
    EXPECT_THAT(summed("\"torch.library.impl(a.lib, 'f', 'CUDA')\""), ElementsAre("error 5"));
}

TEST(PythonCode, AGuardSeparatesItsTwoSides) {
    const auto function = [](std::string_view condition) {
        auto unit = parse_facts(python("    block to=[{1 condition=" + std::string(condition) +
                                       "} {2 condition=" + std::string(condition) +
                                       " when=false}]\n    block to=[2]\n    block leaves\n"));
        return std::move(unit->functions.front());
    };
    EXPECT_TRUE(is_dtype_guarded(function("self.fp16"), 1));
    EXPECT_FALSE(is_dtype_guarded(function("self.fp16"), 2)) << "both sides come here";
    EXPECT_FALSE(is_dtype_guarded(function("self.training"), 1));
    EXPECT_FALSE(is_dtype_guarded(function("self.fp16"), 0));
}

TEST(HeaderCode, AHeaderThatNoSourceIncludesHasNoErrors) {
    const auto unit = [](const std::string& path) {
        return "unit " + path + " language=cuda\n  func 1:1 " + path.substr(0, 1) +
               " kind=device params=[{fp16 pointer name=x}]\n"
               "    accumulate 8:5 acc dtype=fp16 trips=64 at_least=64\n";
    };
    EXPECT_THAT(lint("MP401", {unit("a.cuh"), unit("b.cu")}),
                testing::UnorderedElementsAre("note 8", "error 8"));
    EXPECT_THAT(lint("MP401", {unit("a.cuh")}), ElementsAre("error 8")) << "no source could include it";
}

TEST(NativeCode, WhatOnlyLessonsRunIsANote) {
    const auto unit = [](const std::string& file, const std::string& body) {
        return "unit " + file + " language=cuda\n" + body;
    };
    const std::string kernel = unit("gemm.cu",
                                    "  func 1:1 tile kind=kernel params=[{fp16 pointer name=x}]\n"
                                    "    accumulate 8:5 acc dtype=fp16 trips=64 at_least=64\n");
    const auto runs = [](const std::string& name) {
        return "  func 1:5 " + name + " kind=host\n    call 2:5 tile callee=tile\n";
    };
    const std::string lesson = unit("lesson.cu", runs("main"));
    EXPECT_THAT(lint("MP401", {kernel, lesson}), ElementsAre("note 8"));
    EXPECT_THAT(lint("MP401", {kernel, lesson + "    call 3:5 std::basic_ofstream::open\n"}),
                ElementsAre("note 8"));
    EXPECT_THAT(lint("MP401", {kernel}), ElementsAre("error 8")) << "who runs it is not known";
    EXPECT_THAT(lint("MP401", {kernel, lesson, unit("bind.cu", runs("run"))}), ElementsAre("error 8"));
    EXPECT_THAT(lint("MP401", {kernel, unit("infer.cu", runs("main") + "    call 3:5 fread\n")}),
                ElementsAre("error 8"));
}

}  // namespace
}  // namespace mp::lint::test
