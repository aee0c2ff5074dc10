#include "analyzer/clang/command_line.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "analyzer/clang/extract.hpp"
#include "analyzer/clang/headers.hpp"
#include "analyzer/clang/nvcc.hpp"
#include "tests/analyzer/clang/scratch.hpp"

namespace mp::lint {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::Not;
using testing::SizeIs;
using Words = std::vector<std::string>;

// The words clang gets for the host pass of one command.
Invocation translate(const std::string& command, const std::string& file = "/p/a.cu",
                     CudaHeaders headers = CudaHeaders::stubs) {
    return make_invocation({.file = file, .directory = "/p", .arguments = split_command(command)},
                           {.cuda = headers});
}

bool has_pair(const Words& words, const std::string& first, const std::string& second) {
    const auto at = std::adjacent_find(
        words.begin(), words.end(), [&](const auto& a, const auto& b) { return a == first && b == second; });
    return at != words.end();
}

bool mentions(const Words& words, const std::string& part) {
    return std::any_of(words.begin(), words.end(), [&](const auto& w) { return w.find(part) != w.npos; });
}

TEST(SplitCommand, UndoesQuotesAsAShellWould) {
    EXPECT_THAT(split_command(R"(a  'b c' "d \"e\"" f\ g "" 'h'"i" "j\k")"),
                ElementsAre("a", "b c", "d \"e\"", "f g", "", "hi", "j\\k"));
}

TEST(SplitCommand, RunsAndExpandsNothing) {
    EXPECT_THAT(split_command("$(touch x) `y` $HOME *"), ElementsAre("$(touch", "x)", "`y`", "$HOME", "*"));
}

TEST(SplitCommand, EndsInsideAnOpenQuoteOrABackslash) {
    EXPECT_THAT(split_command("a 'b c"), ElementsAre("a", "b c"));
    EXPECT_THAT(split_command("a \\"), ElementsAre("a", "\\"));
}

TEST(ResponseFile, IsReadRelativeToTheCommandsDirectoryAndNests) {
    Scratch dir;
    dir.write("outer.rsp", "-DA '-DB=b c'\n@inner.rsp");
    dir.write("inner.rsp", "-DC\n");
    CommandNotes notes;
    EXPECT_THAT(expand_response_files({"@outer.rsp", "-DD"}, dir.path(), false, notes),
                ElementsAre("-DA", "-DB=b c", "-DC", "-DD"));
    EXPECT_THAT(notes.warnings, IsEmpty());
}

TEST(ResponseFile, HasFourSpellingsForNvcc) {
    Scratch dir;
    dir.write("x.rsp", "-DX");
    CommandNotes notes;
    const Words all{"@x.rsp", "--options-file", "x.rsp", "--options-file=x.rsp", "-optf", "x.rsp"};
    EXPECT_THAT(expand_response_files(all, dir.path(), true, notes), ElementsAre("-DX", "-DX", "-DX", "-DX"));
    EXPECT_THAT(expand_response_files({"-optf", "x.rsp"}, dir.path(), false, notes),
                ElementsAre("-optf", "x.rsp"));
}

TEST(ResponseFile, ThatIsMissingIsNamed) {
    Scratch dir;
    CommandNotes notes;
    EXPECT_THAT(expand_response_files({"@none.rsp", "-DA"}, dir.path(), false, notes), ElementsAre("-DA"));
    EXPECT_THAT(notes.warnings, ElementsAre(HasSubstr("none.rsp: cannot be read")));
}

TEST(ResponseFile, LoopsEndAndPipesAreNotOpened) {
    Scratch dir;
    dir.write("loop.rsp", "@loop.rsp @loop.rsp -DL");
    ASSERT_EQ(mkfifo((dir.path() + "/pipe").c_str(), 0600), 0);
    CommandNotes notes;
    const auto words = expand_response_files({"@loop.rsp", "@pipe", "@/dev/zero"}, dir.path(), false, notes);
    EXPECT_LT(words.size(), 1000u);
    EXPECT_THAT(notes.warnings, Contains(HasSubstr("nest too deeply")));
    EXPECT_THAT(notes.warnings, Contains(HasSubstr("/dev/zero")));
    EXPECT_THAT(notes.warnings, Contains(HasSubstr("pipe")));
}

// --- nvcc as build systems write it ----------------------------------------------------------------

TEST(Nvcc, CommandOfCMakesNinjaGenerator) {
    const auto i = translate(
        "/usr/local/cuda-12.4/bin/nvcc -forward-unknown-to-host-compiler -DNDEBUG -Dname_EXPORTS "
        "--options-file CMakeFiles/x.rsp -I/p/include -isystem=/opt/dep/include -O3 -DNDEBUG -std=c++17 "
        "\"--generate-code=arch=compute_80,code=[compute_80,sm_80]\" -Xcompiler=-fPIC -Xcompiler "
        "-Wall,-Wextra "
        "--expt-relaxed-constexpr -MD -MT CMakeFiles/x.dir/a.cu.o -MF CMakeFiles/x.dir/a.cu.o.d "
        "-x cu -rdc=true -c /p/a.cu -o CMakeFiles/x.dir/a.cu.o");
    EXPECT_EQ(i.language, Language::cuda);
    EXPECT_TRUE(has_pair(i.host, "-I", "/p/include"));
    EXPECT_TRUE(has_pair(i.host, "-isystem", "/opt/dep/include"));
    EXPECT_TRUE(has_pair(i.host, "-D", "NDEBUG"));
    EXPECT_THAT(i.host, Contains("-std=c++17"));
    EXPECT_THAT(i.host, Contains("-fPIC"));
    EXPECT_TRUE(mentions(i.host, "__CUDACC_RELAXED_CONSTEXPR__"));
    EXPECT_THAT(i.architectures, ElementsAre("sm_80", "compute_80"));
    EXPECT_FALSE(mentions(i.host, ".o"));
    EXPECT_FALSE(mentions(i.host, "rdc"));
    EXPECT_FALSE(mentions(i.host, "-MD"));
    EXPECT_THAT(i.warnings, ElementsAre(HasSubstr("x.rsp")));
}

TEST(Nvcc, CommandOfCMakesMakefileGenerator) {
    Scratch dir;
    dir.write("CMakeFiles/x.dir/includes_CUDA.rsp", "-I/p/include -isystem=/opt/dep/include ");
    const auto i = make_invocation(
        {.file = "a.cu",
         .directory = dir.path(),
         .arguments = split_command("nvcc -forward-unknown-to-host-compiler --options-file "
                                    "CMakeFiles/x.dir/includes_CUDA.rsp -O3 -x cu -c a.cu -o a.o")},
        {.cuda = CudaHeaders::stubs});
    EXPECT_TRUE(has_pair(i.host, "-I", "/p/include"));
    EXPECT_TRUE(has_pair(i.host, "-isystem", "/opt/dep/include"));
    EXPECT_EQ(i.file, dir.path() + "/a.cu");
    EXPECT_THAT(i.warnings, IsEmpty());
}

TEST(Nvcc, CommandOfTorchsExtensionBuilder) {
    const auto i = translate(
        "/opt/cuda/bin/nvcc --generate-dependencies-with-compile --dependency-output a.cuda.o.d "
        "-DTORCH_EXTENSION_NAME=_ext -DTORCH_API_INCLUDE_EXTENSION_H -I/v/torch/include "
        "-isystem /opt/python/include -D_GLIBCXX_USE_CXX11_ABI=1 --compiler-options ''\"'\"'-fPIC'\"'\"'' "
        "-gencode=arch=compute_70,code=sm_70 -gencode arch=compute_90,code=compute_90 "
        "-U__CUDA_NO_HALF_OPERATORS__ "
        "--use_fast_math -std=c++17 -c /p/a.cu -o a.cuda.o");
    EXPECT_TRUE(has_pair(i.host, "-D", "TORCH_EXTENSION_NAME=_ext"));
    EXPECT_THAT(i.host, Contains("-fPIC"));
    EXPECT_THAT(i.flags, ElementsAre("--use_fast_math"));
    EXPECT_THAT(i.host, Contains("--cuda-gpu-arch=sm_90"));
    EXPECT_THAT(i.warnings, IsEmpty());
    // Torch's macros come first, so that the command's own -U has the last word.
    const auto defined = std::find(i.host.begin(), i.host.end(), "-D__CUDA_NO_HALF_OPERATORS__");
    const auto undone = std::find(i.host.begin(), i.host.end(), "__CUDA_NO_HALF_OPERATORS__");
    ASSERT_NE(defined, i.host.end());
    EXPECT_LT(defined, undone);
}

TEST(Nvcc, MacrosOfTorchStayAwayFromOtherBuilds) {
    EXPECT_FALSE(mentions(translate("nvcc -c /p/a.cu").host, "NO_HALF"));
}

TEST(Nvcc, LongNamesMeanTheSame) {
    const auto i = translate(
        "nvcc --include-path=/p/i --include-path /p/j --define-macro=A=1 --define-macro B --undefine-macro C "
        "--system-include /p/s --pre-include pre.h --std c++20 --gpu-architecture=sm_86 --output-file x.o "
        "--ptxas-options=-v --maxrregcount=64 --threads 4 -t4 -lcudart -L/x --extended-lambda -c /p/a.cu");
    EXPECT_TRUE(has_pair(i.host, "-I", "/p/i"));
    EXPECT_TRUE(has_pair(i.host, "-I", "/p/j"));
    EXPECT_TRUE(has_pair(i.host, "-D", "A=1"));
    EXPECT_TRUE(has_pair(i.host, "-D", "B"));
    EXPECT_TRUE(has_pair(i.host, "-U", "C"));
    EXPECT_TRUE(has_pair(i.host, "-isystem", "/p/s"));
    EXPECT_TRUE(has_pair(i.host, "-include", "pre.h"));
    EXPECT_THAT(i.host, Contains("-std=c++20"));
    EXPECT_THAT(i.host, Contains("--cuda-gpu-arch=sm_86"));
    EXPECT_FALSE(mentions(i.host, "cudart"));
    EXPECT_FALSE(mentions(i.host, "x.o"));
    EXPECT_THAT(i.warnings, IsEmpty());
}

TEST(Nvcc, NumericsFlagsAreRecordedAndNotForwarded) {
    const auto i = translate(
        "nvcc -use_fast_math -ftz=true --prec-div=false -prec-sqrt false -fmad=false "
        "-DUSE_TF32=1 -c /p/a.cu");
    EXPECT_THAT(i.flags, ElementsAre("--use_fast_math", "-ftz=true", "-prec-div=false", "-prec-sqrt=false",
                                     "-fmad=false", "-DUSE_TF32=1"));
    EXPECT_FALSE(mentions(i.host, "fast"));
    EXPECT_FALSE(mentions(i.host, "ftz"));
    EXPECT_TRUE(has_pair(i.host, "-D", "USE_TF32=1")) << "a macro means something to the source too";
}

TEST(Nvcc, DropsWhatOtherStagesRead) {
    for (const std::string flag : {"-lineinfo",
                                   "-G",
                                   "-g",
                                   "-dc",
                                   "-dw",
                                   "-dlto",
                                   "-rdc=true",
                                   "-Xptxas -v",
                                   "-Xptxas=-O3",
                                   "-Xfatbin -compress-all",
                                   "-Xlinker -z",
                                   "-Xnvlink --suppress",
                                   "-Xcudafe --display_error_number",
                                   "--threads 8",
                                   "-ccbin g++-12",
                                   "-ccbin=/usr/bin/g++",
                                   "-diag-suppress 177",
                                   "--diag-suppress=20012",
                                   "-maxrregcount 32",
                                   "-cudart static",
                                   "-MD",
                                   "-MF x.d",
                                   "-MT x.o",
                                   "-o x.o",
                                   "--keep",
                                   "--keep-dir k",
                                   "-Werror all-warnings",
                                   "-allow-unsupported-compiler",
                                   "--resource-usage",
                                   "-m64",
                                   "--expt-extended-lambda"}) {
        const auto i = translate("nvcc -DBEFORE " + flag + " -DAFTER -c /p/a.cu");
        const auto bare = translate("nvcc -DBEFORE -DAFTER -c /p/a.cu");
        EXPECT_THAT(i.warnings, IsEmpty()) << flag;
        EXPECT_TRUE(has_pair(i.host, "-D", "AFTER")) << flag << " ate the next option";
        const std::size_t defines =
            mentions(i.host, "CUDACC_EXTENDED") || mentions(i.host, "CUDACC_RDC") ? 2 : 0;
        EXPECT_THAT(i.host, SizeIs(bare.host.size() + defines)) << flag << " was forwarded";
    }
}

TEST(Architecture, IsTheHighestThatClangKnows) {
    EXPECT_EQ(choose_architecture({}), "sm_80");
    EXPECT_EQ(choose_architecture({"sm_70", "compute_86", "sm_80"}), "sm_86");
    EXPECT_EQ(choose_architecture({"sm_80", "sm_100", "compute_120"}), "sm_80");
    EXPECT_EQ(choose_architecture({"sm_100a"}), "sm_90");
    EXPECT_EQ(choose_architecture({"sm_90a"}), "sm_90a");
    EXPECT_EQ(choose_architecture({"sm_90"}), "sm_90");
}

TEST(Architecture, NativeIsNotANumber) {
    const auto i = translate("nvcc -arch=native -c /p/a.cu");
    EXPECT_THAT(i.architectures, IsEmpty());
    EXPECT_THAT(i.host, Contains("--cuda-gpu-arch=sm_80"));
}

// --- clang and gcc ---------------------------------------------------------------------------------

TEST(Clang, CudaCommandKeepsItsArchitecture) {
    const auto i = translate(
        "clang++ -x cuda --cuda-gpu-arch=sm_75 --offload-arch=sm_86 --cuda-path=/opt/cuda -c /p/a.cpp",
        "/p/a.cpp");
    EXPECT_EQ(i.language, Language::cuda);
    EXPECT_THAT(i.host, Contains("--cuda-gpu-arch=sm_86"));
    EXPECT_FALSE(mentions(i.host, "/opt/cuda")) << "which headers are read is our option";
    EXPECT_THAT(i.host, Contains("--cuda-host-only"));
    EXPECT_THAT(i.device, Contains("--cuda-device-only"));
}

TEST(Clang, PlainCppHasNoDevicePass) {
    const auto i =
        translate("/usr/bin/c++ -Iinc -std=gnu++20 -O2 -g -Wall -fno-exceptions -o a.o -c a.cpp", "a.cpp");
    EXPECT_EQ(i.language, Language::cpp);
    EXPECT_THAT(i.device, IsEmpty());
    EXPECT_THAT(i.host, Contains("-std=gnu++20"));
    EXPECT_THAT(i.host, Contains("-fno-exceptions"));
    EXPECT_TRUE(has_pair(i.host, "-I", "/p/inc"));
    EXPECT_EQ(i.host.back(), "/p/a.cpp");
    EXPECT_EQ(i.headers, "");
    EXPECT_THAT(i.warnings, IsEmpty());
}

TEST(Clang, LaunchersAndShellCommandsAroundTheCompilerAreSkipped) {
    for (const std::string before :
         {"ccache ", "/usr/bin/sccache ", "env LC_ALL=C ", "cd /p && ", "CCACHE_DIR=/c ccache "}) {
        const auto i = translate(before + "nvcc -ftz=true -DA -c /p/a.cu -o a.o && echo done");
        EXPECT_TRUE(has_pair(i.host, "-D", "A")) << before;
        EXPECT_THAT(i.flags, ElementsAre("-ftz=true")) << before << "hid nvcc";
    }
}

TEST(Clang, LanguageFollowsTheExtension) {
    EXPECT_EQ(translate("clang++ -c /p/a.cuh", "/p/a.cuh").language, Language::cuda);
    EXPECT_TRUE(has_pair(translate("clang++ /p/a.h", "/p/a.h").host, "-x", "c++"));
    EXPECT_TRUE(has_pair(translate("gcc -c /p/a.c", "/p/a.c").host, "-x", "c"));
    EXPECT_TRUE(has_pair(translate("g++ -c /p/a.c", "/p/a.c").host, "-x", "c++"));
}

TEST(Clang, PrecompiledHeaderOfCMakeBecomesItsText) {
    const auto i = translate(
        "clang++ -Xclang -include-pch -Xclang /p/h.hxx.pch -Xclang -include -Xclang /p/h.hxx -c /p/a.cpp",
        "/p/a.cpp");
    EXPECT_TRUE(has_pair(i.host, "-include", "/p/h.hxx"));
    EXPECT_FALSE(mentions(i.host, ".pch"));
}

TEST(Clang, RecursionLimitsAreLowered) {
    const auto i =
        translate("clang++ -ftemplate-depth=900000000000 -fbracket-depth=512 -c /p/a.cpp", "/p/a.cpp");
    EXPECT_THAT(i.host, Contains("-ftemplate-depth=2048"));
    EXPECT_THAT(i.host, Contains("-fbracket-depth=512"));
}

// Nothing that loads code, writes a file or reads something that is not source text.
TEST(Hostile, OptionsAreDroppedAndNamed) {
    for (const std::string flag : {"-fplugin=/x/evil.so",
                                   "-fpass-plugin=/x/evil.so",
                                   "-Xclang -load -Xclang /x/evil.so",
                                   "-Xclang -fplugin=/x/evil.so",
                                   "-Xclang -plugin -Xclang evil",
                                   "-Xclang -add-plugin -Xclang evil",
                                   "-mllvm -load=/x/evil.so",
                                   "--config=/x/evil.cfg",
                                   "-B/x/evil",
                                   "-save-temps",
                                   "-ftime-trace=/x/evil.json",
                                   "-fmodules-cache-path=/x/evil",
                                   "--serialize-diagnostics /x/evil.dia",
                                   "-ivfsoverlay /x/evil.yaml",
                                   "-include-pch /x/evil.pch",
                                   "-resource-dir /x/evil",
                                   "-wrapper /x/evil",
                                   "-fcrash-diagnostics-dir=/x/evil",
                                   "-MJ /x/evil.json",
                                   "-fmodule-file=/x/evil.pcm",
                                   "-fsanitize-ignorelist=/x/evil",
                                   "-Xclang -o -Xclang /x/evil",
                                   "-emit-ast"}) {
        const auto i = translate("clang++ -DBEFORE " + flag + " -DAFTER -c /p/a.cpp", "/p/a.cpp");
        const auto bare = translate("clang++ -DBEFORE -DAFTER -c /p/a.cpp", "/p/a.cpp");
        EXPECT_THAT(i.warnings, Not(IsEmpty())) << flag;
        EXPECT_EQ(i.host, bare.host) << flag << " got through";
    }
}

TEST(Hostile, UsualOutputsAreDroppedInSilence) {
    for (const std::string flag :
         {"-o /x/evil.o", "-MD -MF /x/evil.d", "-S", "-E", "-emit-llvm", "-gsplit-dwarf", "-fuse-ld=evil",
          "-specs=/x/evil", "-Wl,-evil", "--coverage", "-fprofile-generate=/x/evil", "-fsyntax-only"}) {
        const auto i = translate("clang++ -DA " + flag + " -c /p/a.cpp", "/p/a.cpp");
        const auto bare = translate("clang++ -DA -c /p/a.cpp", "/p/a.cpp");
        EXPECT_EQ(i.host, bare.host) << flag << " got through";
    }
}

TEST(Hostile, ThroughNvccTheHostCompilersOptionsAreFilteredToo) {
    const auto i =
        translate("nvcc -Xcompiler -fplugin=/x/evil.so,-DA --compiler-options '-B /x/evil' -c /p/a.cu");
    EXPECT_FALSE(mentions(i.host, "evil"));
    EXPECT_TRUE(has_pair(i.host, "-D", "A"));
    EXPECT_THAT(i.warnings, Contains(HasSubstr("-fplugin=/x/evil.so")));
}

TEST(Hostile, UnknownOptionsAreNamed) {
    const auto i = translate("g++ -fno-such-thing-at-all -c /p/a.cpp", "/p/a.cpp");
    EXPECT_THAT(i.warnings, ElementsAre(HasSubstr("-fno-such-thing-at-all")));
}

TEST(Hostile, EmptyAndCutShortCommandsStillGiveAParse) {
    for (const std::string command :
         {"", "nvcc", "clang++ -I", "nvcc -gencode", "&&", "ccache", "nvcc --options-file", "- -- ---"}) {
        const auto i = translate(command);
        EXPECT_EQ(i.host.back(), "/p/a.cu") << command;
    }
}

// --- headers ---------------------------------------------------------------------------------------

class Headers : public testing::Test {
protected:
    void SetUp() override {
        for (const auto* name : {"cuda_runtime.h", "cuda_runtime_api.h"}) {
            dir.write(std::string("kit/include/") + name, "#define CUDART_VERSION 12040\n");
            dir.write(std::string("other/include/") + name, "#define CUDART_VERSION 11080\n");
        }
        dir.write("venv/torch/include/ATen/ATen.h", "");
    }

    Invocation translate(const Words& words, CudaHeaders headers = CudaHeaders::automatic, bool own = false) {
        return make_invocation({.file = "a.cu", .directory = dir.path(), .arguments = words},
                               {.cuda = headers, .cuda_path = own ? dir.path() + "/kit" : ""});
    }

    Scratch dir;
    const std::string ours = header_places().ours;
};

TEST_F(Headers, OfTheToolkitTheCommandNames) {
    const auto i = translate({"nvcc", "-Ikit/include", "-c", "a.cu"});
    EXPECT_EQ(i.headers, "toolkit 12.4");
    EXPECT_THAT(i.host, Contains("--cuda-path=" + dir.path() + "/kit"));
    EXPECT_TRUE(has_pair(i.host, "-include", "mp_cuda_compat.h"));
    EXPECT_TRUE(has_pair(i.host, "-idirafter", ours + "/shims"));
    EXPECT_TRUE(has_pair(i.host, "-isystem", dir.path() + "/kit/include")) << "-I would make them user code";
}

TEST_F(Headers, OfANewToolkitAreReadAsTheNewestClangKnows) {
    EXPECT_THAT(translate({"nvcc", "-Ikit/include"}).device, Contains("-target-sdk-version=12.4"));
    dir.write("kit/include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n");
    EXPECT_THAT(translate({"nvcc", "-Ikit/include"}).device, Contains("-target-sdk-version=12.5"));
    EXPECT_FALSE(mentions(translate({"nvcc"}, CudaHeaders::stubs).device, "-target-sdk-version"));
}

TEST_F(Headers, OfAnotherToolkitAreNeverMixedIn) {
    const auto i = translate({"nvcc", "-Iother/include", "-c", "a.cu"}, CudaHeaders::automatic, true);
    EXPECT_EQ(i.headers, "toolkit 12.4");
    EXPECT_FALSE(mentions(i.host, dir.path() + "/other"));
}

TEST_F(Headers, OurStubsStandAlone) {
    const auto i = translate({"nvcc", "-Ikit/include", "-c", "a.cu"}, CudaHeaders::stubs);
    EXPECT_EQ(i.headers, "stubs");
    EXPECT_FALSE(mentions(i.host, "/kit/include"));
    EXPECT_TRUE(has_pair(i.host, "-isystem", ours + "/cuda"));
    EXPECT_TRUE(has_pair(i.host, "-include", "mp_cuda_stub.h"));
    EXPECT_THAT(i.host, Contains("-nocudainc"));
    if (::access("/usr/include/ATen/ATen.h", R_OK) == 0) GTEST_SKIP() << "libtorch-dev has a shim of its own";
    EXPECT_FALSE(mentions(i.host, "/shims"));
}

TEST_F(Headers, OfTheSystemKeepTheirPlaceInTheSearch) {
    EXPECT_FALSE(has_pair(translate({"nvcc", "-I/usr/include"}).host, "-I", "/usr/include"));
    EXPECT_FALSE(has_pair(translate({"nvcc", "-isystem", "/usr/include"}).host, "-isystem", "/usr/include"));
}

TEST_F(Headers, OfAToolkitThatIsNotThereFallBackToStubsWithAWord) {
    const auto i = make_invocation({.file = "a.cu", .directory = dir.path(), .arguments = {"nvcc"}},
                                   {.cuda = CudaHeaders::toolkit, .cuda_path = dir.path() + "/none"});
    EXPECT_EQ(i.headers, "stubs");
    EXPECT_THAT(i.warnings, ElementsAre(HasSubstr("no CUDA toolkit in")));
}

TEST_F(Headers, OfTorchAreTheBuildsOwnWhenItHasThem) {
    const auto real = translate({"nvcc", "-Ivenv/torch/include", "-c", "a.cu"}, CudaHeaders::stubs);
    EXPECT_FALSE(mentions(real.host, ours + "/torch"));
    EXPECT_TRUE(has_pair(real.host, "-isystem", dir.path() + "/venv/torch/include"));
    const auto stub = translate({"nvcc", "-c", "a.cu"}, CudaHeaders::stubs);
    if (has_torch_headers("/usr/include") || has_torch_headers("/usr/local/include"))
        GTEST_SKIP() << "libtorch-dev is installed";
    EXPECT_TRUE(has_pair(stub.host, "-idirafter", ours + "/torch"));
}

}  // namespace
}  // namespace mp::lint
