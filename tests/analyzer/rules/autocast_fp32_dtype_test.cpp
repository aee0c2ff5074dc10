#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

std::string python(const std::string& arguments) {
    return "unit m.py language=python\n  func 1:5 m.f kind=python\n"
           "    call 3:10-52 torch.autocast kind=constructor args=[{constant=\"'cuda'\"} " +
           arguments + "]\n";
}

constexpr const char* kFp32 = "{fp32 dtype constant=torch.float32 keyword=dtype span=3:37-50}";

TEST(AutocastFp32Dtype, ALiteralFp32OfAnotherDeviceIsAWarning) {
    const auto on = [](std::string_view device) {
        std::string code = python(kFp32);
        code.replace(code.find("constant=\"'cuda'\""), 17, device);
        return lint("MP106", {code});
    };
    EXPECT_THAT(on("constant=\"'cuda'\""), ElementsAre("note 3")) << "CUDA takes it";
    EXPECT_THAT(on("name=device"), ElementsAre("note 3")) << "which may be CUDA";
    EXPECT_THAT(on("constant=\"'cpu'\""), ElementsAre("warning 3"));
}

TEST(AutocastFp32Dtype, TheFixDisablesTheRegionAndIsNotSafe) {
    const auto found = findings("MP106", {python(kFp32)});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].edits.size(), 1u);
    EXPECT_EQ(found[0].edits[0].text, ", enabled=False");
    EXPECT_EQ(found[0].edits[0].at.column, 50u);
    EXPECT_EQ(found[0].edits[0].at.end_column, 50u);
    EXPECT_FALSE(found[0].safe_edits);
}

TEST(AutocastFp32Dtype, HalfIsSilent) {
    EXPECT_THAT(lint("MP106", {python("{bf16 dtype constant=torch.bfloat16 keyword=dtype}")}), IsEmpty());
}

TEST(AutocastFp32Dtype, ADisabledRegionIsSilent) {
    EXPECT_THAT(lint("MP106", {python(std::string(kFp32) + " {bool constant=false keyword=enabled}")}),
                IsEmpty());
}

TEST(AutocastFp32Dtype, AFlagThatMayDisableItIsSilent) {
    EXPECT_THAT(lint("MP106", {python(std::string(kFp32) + " {name=use_amp keyword=enabled}")}), IsEmpty());
}

TEST(AutocastFp32Dtype, AVariableDtypeIsSilent) {
    EXPECT_THAT(lint("MP106", {python("{unknown dtype name=dtype keyword=dtype}")}), IsEmpty());
}

TEST(AutocastFp32Dtype, TheSettersOfCppAreRead) {
    EXPECT_THAT(
        lint("MP106", {host("call 4:5 at::autocast::set_autocast_gpu_dtype "
                            "args=[{other constant=at::kFloat}]\n"
                            "call 5:5 at::autocast::set_autocast_dtype "
                            "args=[{other constant=at::kCPU} {other constant=at::kFloat}]\n"
                            "call 6:5 at::autocast::set_autocast_dtype "
                            "args=[{other constant=at::kCPU} {other constant=at::kBFloat16}]\n"
                            "call 7:5 at::autocast::set_autocast_cpu_dtype args=[{other name=old}]\n")}),
        ElementsAre("note 4", "warning 5"));
}

TEST(AutocastFp32Dtype, ARegionThatStaysOffTakesNoDtype) {
    const auto program = [](const std::string& opens) {
        return host("call 4:5 " + opens +
                    " args=[{bool constant=true}]\n"
                    "call 5:5 at::autocast::set_autocast_cpu_dtype args=[{other constant=kFloat}]\n");
    };
    EXPECT_THAT(lint("MP106", {program("at::autocast::set_enabled")}), IsEmpty());
    EXPECT_THAT(lint("MP106", {program("at::autocast::set_cpu_enabled")}), ElementsAre("warning 5"));
}

}  // namespace
}  // namespace mp::lint::test
