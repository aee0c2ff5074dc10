#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp604(std::string_view facts) { return lint("MP604", {python(facts)}); }

const std::string kBare = "    call 2:9-40 torch.cuda.is_bf16_supported\n";

TEST(Bf16WithoutSupportCheck, ABareQuestionCountsEmulation) {
    EXPECT_THAT(mp604(kBare), ElementsAre("warning 2"));
    EXPECT_THAT(mp604("    call 2:9 torch.cuda.is_bf16_supported args=[{constant=false "
                      "keyword=including_emulation}]\n"),
                IsEmpty());
    EXPECT_THAT(mp604("    call 2:9 torch.cuda.is_bf16_supported args=[{constant=true "
                      "keyword=including_emulation}]\n"),
                ElementsAre("warning 2"));
}

TEST(Bf16WithoutSupportCheck, EmulationCountsFromTorch23On) {
    const auto with_torch = [](std::string_view version) {
        return lint("MP604", {python(kBare)}, Profile::training, version);
    };
    EXPECT_THAT(with_torch("2.2"), IsEmpty());
    EXPECT_THAT(with_torch("2.3"), ElementsAre("warning 2"));
}

TEST(Bf16WithoutSupportCheck, ACapabilityBesideItDecides) {
    EXPECT_THAT(mp604(kBare + "    call 2:50 torch.cuda.get_device_capability\n"), IsEmpty());
}

TEST(Bf16WithoutSupportCheck, ARegionWithoutAnyQuestion) {
    const std::string region = open("{bf16 dtype constant=torch.bfloat16 keyword=dtype}");
    EXPECT_THAT(mp604(region), ElementsAre("note 2"));
    EXPECT_THAT(mp604(region + region), ElementsAre("note 2")) << "one choice, one finding";
    EXPECT_THAT(mp604(region + "    call 9:1 torch.cuda.get_device_capability\n"), IsEmpty());
    EXPECT_THAT(mp604(open("{fp16 dtype constant=torch.float16 keyword=dtype}")), IsEmpty());
    EXPECT_THAT(mp604(open("{other name=dtype keyword=dtype}")), IsEmpty());
}

TEST(Bf16WithoutSupportCheck, TransformerEngineRunsOnNoOlderDevice) {
    EXPECT_THAT(mp604(open("{bf16 dtype constant=torch.bfloat16 keyword=dtype}") +
                      "    call 3:9 transformer_engine.pytorch.autocast kind=constructor\n"),
                IsEmpty());
}

TEST(Bf16WithoutSupportCheck, ACalleeMayAsk) {
    const std::string region = open("{bf16 dtype constant=torch.bfloat16 keyword=dtype}");
    const std::string helper =
        "unit h.py language=python\n  func 1:5 h.pick kind=python\n"
        "    call 2:9 torch.cuda.get_device_capability\n";
    EXPECT_THAT(lint("MP604", {python(region + "    call 8:1 h.pick callee=h.pick\n"), helper}), IsEmpty());
    EXPECT_THAT(lint("MP604", {python(region), helper}), ElementsAre("note 2"));
}

TEST(Bf16WithoutSupportCheck, CppRegions) {
    const auto set = [](std::string dtype) {
        return lint("MP604",
                    {host("    call 5:3 at::autocast::set_autocast_gpu_dtype args=[{" + dtype + "}]\n")});
    };
    EXPECT_THAT(set("bf16 other constant=kBFloat16"), ElementsAre("warning 5"));
    EXPECT_THAT(set("fp16 other constant=kHalf"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
