#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/trace/cupti_probe.hpp"
#include "scratch.hpp"
#include "tests/fakes/source_dir.hpp"

namespace mp::launch::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string said(const std::string& json) { return "noise\nmp-trace-doctor:facts " + json + "\nmore noise"; }

TEST(TorchAnswer, IsReadWhateverIsPrintedAroundIt) {
    const TorchFacts facts = torch_from_output(said(
        R"({"found": true, "executable": "/e", "version": "2.11.0", "cuda_built": null, "cxx11_abi": true,
            "nccl_version": [2, 28, 9], "switches": {"a": "b"}, "library_dirs": ["/x"], "cudnn": 91900})"));
    EXPECT_EQ(facts.fault, "gave an answer that is not readable");  // JSON over several lines is not ours
    const TorchFacts good = torch_from_output(said(
        R"({"found": true, "executable": "/e", "version": "2.11.0", "cuda_built": null, "cxx11_abi": true,)"
        R"( "nccl_version": [2, 28, 9], "switches": {"a": "b"}, "library_dirs": ["/x"], "cudnn": 91900})"));
    EXPECT_TRUE(good.found);
    EXPECT_EQ(good.fault, "");
    EXPECT_EQ(good.version, "2.11.0");
    EXPECT_EQ(good.cuda_built, "");
    EXPECT_EQ(good.cxx11_abi, true);
    EXPECT_EQ(good.gloo, std::nullopt);
    EXPECT_EQ(good.cudnn, "91900");
    EXPECT_THAT(good.nccl_version, ElementsAre(2, 28, 9));
    EXPECT_EQ(good.switches.at("a"), "b");
}

TEST(TorchAnswer, OfTheWrongShapeGivesLessAndNeverCrashes) {
    for (const char* const json :
         {"", "{", "[]", "null", "3", R"({"found": "yes"})",
          R"({"found": true, "version": 3, "switches": [1]})", R"({"nccl_version": [1e400, "x", null, {}]})",
          R"({"library_dirs": {"a": 1}, "cudnn": {}})", R"({"executable": "\ud800"})",
          R"({"nccl_version": [99999999999999999999]})"}) {
        const TorchFacts facts = torch_from_output(said(json));
        EXPECT_EQ(facts.version, "") << json;
        torch_section(facts, {});
        bf16_section(facts, {});
        tf32_section(facts, {}, {});
    }
    const TorchFacts deep = torch_from_output(said(std::string(200'000, '[')));
    EXPECT_NE(deep.fault, "");
    EXPECT_NE(torch_from_output("").fault, "");
}

using TorchChild = Scratch;

TEST_F(TorchChild, AnInterpreterThatCannotAnswerIsReportedWithItsReason) {
    EXPECT_THAT(probe_torch(directory_ + "/none", "").fault, HasSubstr("could not be started"));
    EXPECT_THAT(probe_torch(program("crash", "kill -SEGV $$"), "").fault, HasSubstr("signal 11"));
    EXPECT_THAT(probe_torch(program("hang", "sleep 1000"), "", 200).fault, HasSubstr("did not answer"));
    EXPECT_THAT(probe_torch(program("silent", "exit 0"), "").fault, HasSubstr("no answer"));
    const TorchFacts failed = probe_torch(program("fail", "echo 'one\nlast words' >&2; exit 9"), "");
    EXPECT_EQ(failed.fault, "exited with status 9");
    EXPECT_EQ(failed.fault_text, "last words");
    const Line line = line_of(torch_section(failed, {}), "Python");
    EXPECT_EQ(line.verdict, Verdict::no);
    EXPECT_TRUE(line.needed);
    EXPECT_THAT(line.value, HasSubstr("exited with status 9: last words"));
    EXPECT_THAT(line.hint, HasSubstr("--python"));
}

TEST_F(TorchChild, ATorchOnPythonpathIsFoundThoughIsolatedPythonDoesNotSeeIt) {
    const std::string python = program("python", R"(
case "$1" in
  -I) printf '\nmp-trace-doctor:facts {"found": false, "executable": "/p"}\n' ;;
  *) printf '\nmp-trace-doctor:facts {"found": true, "executable": "/p", "version": "2.4.0"}\n' ;;
esac)");
    const TorchFacts facts = probe_torch(python, "");
    EXPECT_TRUE(facts.found);
    EXPECT_FALSE(facts.isolated);
    EXPECT_THAT(line_of(torch_section(facts, {}), "found through").value, HasSubstr("PYTHONPATH"));
}

TEST_F(TorchChild, AnAnswerCountsThoughTheChildDiesAfterIt) {
    const TorchFacts facts = probe_torch(program("python", R"(
printf '\nmp-trace-doctor:facts {"found": true, "executable": "/p", "version": "2.4.0"}\n'
kill -SEGV $$)"),
                                         "");
    EXPECT_EQ(facts.version, "2.4.0");
    EXPECT_EQ(facts.fault, "");
}

TEST_F(TorchChild, TheCuptiAnswerOfTheTorchProcessComesBackAsItsBytes) {
    const TorchFacts facts = probe_torch(program("python", R"(
printf '\nmp-trace-doctor:facts {"found": true, "executable": "/p"}\n'
printf '\nmp-trace-doctor:cupti 00ff1a\n')"),
                                         "/probe.so");
    EXPECT_EQ(facts.cupti, std::string("\x00\xff\x1a", 3));
    EXPECT_FALSE(cupti_from_bytes(facts.cupti).asked);
    EXPECT_EQ(torch_from_output("\nmp-trace-doctor:cupti 0g\n").cupti, "");
}

TEST(TorchSection, ATorchThatIsMissingOrBrokenIsNeeded) {
    TorchFacts facts;
    facts.executable = "/opt/python";
    const Line missing = line_of(torch_section(facts, {}), "torch");
    EXPECT_EQ(missing.verdict, Verdict::no);
    EXPECT_TRUE(missing.needed);
    facts.found = true;
    facts.fault = "ImportError: libcudnn.so.9";
    EXPECT_THAT(line_of(torch_section(facts, {}), "torch").value,
                HasSubstr("cannot be imported: ImportError"));
}

TEST(TorchSection, AnAdapterIsThereOrWillBeBuiltOrCannotBe) {
    const TorchFacts torch = cuda_torch(true);
    AdapterFacts adapter{.id = "0123456789abcdef", .path = "/a/libmptrace_torch_0123456789abcdef.so"};
    EXPECT_EQ(line_of(torch_section(torch, adapter), "adapter").verdict, Verdict::ok);
    adapter.outdated = true;
    EXPECT_EQ(line_of(torch_section(torch, adapter), "adapter").verdict, Verdict::warn);
    adapter = {.id = "0123456789abcdef", .sources = "/s", .cmake = "/c", .compiler = "/d", .ninja = "/n"};
    const Line later = line_of(torch_section(torch, adapter), "adapter");
    EXPECT_EQ(later.verdict, Verdict::warn);
    EXPECT_THAT(later.hint, HasSubstr("mp-trace build-adapter --python"));
    adapter.cmake.clear();
    adapter.compiler.clear();
    const Line never = line_of(torch_section(torch, adapter), "adapter");
    EXPECT_EQ(never.verdict, Verdict::no);
    EXPECT_TRUE(never.needed);
    EXPECT_THAT(never.value, HasSubstr("no cmake, a C++ compiler"));
    EXPECT_EQ(line_of(torch_section(torch, {.why = "no libtorch"}), "adapter").verdict, Verdict::no);
}

TEST(TorchSection, AVersionThatNobodyTriedIsSaid) {
    TorchFacts torch = cuda_torch(true);
    for (const char* const old : {"1.12.1", "1.9.0+cu111", "0.4", "", "nonsense"}) {
        torch.version = old;
        EXPECT_EQ(line_of(torch_section(torch, {}), "version").verdict, Verdict::warn) << old;
    }
    for (const char* const known : {"1.13.0a0", "2.0.0", "2.11.0+cu130", "10.0"}) {
        torch.version = known;
        EXPECT_EQ(line_of(torch_section(torch, {}), "version").verdict, Verdict::ok) << known;
    }
}

TEST(TorchSection, BackendsAreListedOneByOne) {
    TorchFacts torch = cuda_torch(true);
    torch.distributed = true;
    torch.gloo = true;
    torch.mpi = false;
    const Section section = torch_section(torch, {});
    EXPECT_EQ(line_of(section, "backend gloo").verdict, Verdict::ok);
    EXPECT_EQ(line_of(section, "backend mpi").value, "not built into this torch");
    EXPECT_EQ(line_of(section, "backend ucc").value, "not known");
    torch.distributed = false;
    EXPECT_EQ(line_of(torch_section(torch, {}), "torch.distributed").value, "not built into this torch");
}

TEST_F(TorchChild, AnAdapterIsFoundByTheIdOfTheLibraryThatWasMapped) {
    TorchFacts torch = cuda_torch(true);
    torch.libtorch = "/proc/self/exe";
    const Result<std::string> id = adapter_id(torch.libtorch);
    ASSERT_TRUE(id);
    EXPECT_EQ(probe_adapter(torch, {directory_}, "").path, "");
    const std::string path = file("libmptrace_torch_" + *id + ".so", "");
    const AdapterFacts found = probe_adapter(torch, {"/nowhere", directory_}, "");
    EXPECT_EQ(found.path, path);
    EXPECT_EQ(found.id, *id);
    torch.libtorch = directory_ + "/gone";
    EXPECT_NE(probe_adapter(torch, {directory_}, "").why, "");
}

TEST_F(TorchChild, OnlyAnAdapterThatWasBuiltOnDemandCanBeOutdated) {
    TorchFacts torch = cuda_torch(true);
    torch.libtorch = "/proc/self/exe";
    const Result<std::string> id = adapter_id(torch.libtorch);
    ASSERT_TRUE(id);
    const std::string name = "libmptrace_torch_" + *id + ".so";
    file("sources/instrument/torch/CMakeLists.txt", "");
    file("shipped/" + name, "");
    file("mp-trace/adapters/" + name, "");
    setenv("XDG_CACHE_HOME", directory_.c_str(), 1);
    EXPECT_FALSE(probe_adapter(torch, {directory_ + "/shipped"}, directory_ + "/sources").outdated);
    EXPECT_TRUE(probe_adapter(torch, {directory_ + "/mp-trace/adapters"}, directory_ + "/sources").outdated);
    unsetenv("XDG_CACHE_HOME");
}

// The real interpreters that a developer's machine may have.
class RealTorch : public testing::TestWithParam<const char*> {};

TEST_P(RealTorch, AnswersEveryQuestionThatItHas) {
    std::string python = GetParam();
    if (!python.starts_with('/')) python = std::string(mp_source_dir()) + "/" + python;
    if (!std::filesystem::exists(python)) GTEST_SKIP() << python << " is not installed";
    const TorchFacts facts = probe_torch(python, "");
    if (!facts.found) GTEST_SKIP() << python << " has no torch";
    EXPECT_EQ(facts.fault, "") << facts.fault_text;
    EXPECT_FALSE(facts.version.empty());
    EXPECT_THAT(facts.libtorch, HasSubstr("libtorch_cpu.so"));
    EXPECT_TRUE(facts.cxx11_abi.has_value());
    EXPECT_TRUE(facts.switches.contains("cuda.matmul.allow_tf32"));
    EXPECT_TRUE(facts.switches.contains("cudnn.allow_tf32"));
    EXPECT_EQ(facts.autocast_cpu, "torch.bfloat16");
    EXPECT_TRUE(facts.gloo.has_value());
    EXPECT_TRUE(adapter_id(facts.libtorch));
}

INSTANTIATE_TEST_SUITE_P(Installed, RealTorch, testing::Values("/usr/bin/python3", ".venv/bin/python"),
                         [](const auto& each) { return each.index == 0 ? "Debian" : "Venv"; });

}  // namespace
}  // namespace mp::launch::doctor
