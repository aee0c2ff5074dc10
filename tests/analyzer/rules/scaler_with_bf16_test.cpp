#include "tests/analyzer/rules/protocol_facts.hpp"

namespace mp::lint::test {
namespace {

std::string program(std::string_view dtype, std::string_view scaler = "") {
    return "unit t.py language=python\n  func 1:5 t.main kind=python\n"
           "    call 2:5-30 torch.amp.GradScaler kind=constructor args=[" +
           std::string(scaler) +
           "]\n"
           "    call 3:5-30 torch.autocast kind=constructor args=[{constant=\"'cuda'\"} {" +
           std::string(dtype) +
           " dtype keyword=dtype}]\n"
           "    call 3:5-30 torch.autocast.__enter__ kind=method args=[{call=1}]\n";
}

TEST(ScalerWithBf16, AnEnabledScalerOverBf16OnlyIsANote) {
    EXPECT_THAT(lint("MP208", {program("bf16")}), ElementsAre("note 2"));
    EXPECT_THAT(lint("MP208", {program("fp16")}), IsEmpty());
    EXPECT_THAT(lint("MP208", {program("unknown")}), IsEmpty());
    EXPECT_THAT(lint("MP208", {program("bf16", "{name=fp16 keyword=enabled}")}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
