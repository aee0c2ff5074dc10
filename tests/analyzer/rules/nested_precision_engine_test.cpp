#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

constexpr const char* kBf16Autocast = "{bf16 dtype constant=torch.bfloat16 keyword=dtype}";

std::string lightning(std::string_view precision) {
    return "unit run.py language=python\n  func 1:1 run.main kind=python\n"
           "    call 9:5 lightning.Trainer kind=constructor args=[{constant=\"'" +
           std::string(precision) + "'\" keyword=precision}]\n";
}

std::string hook(std::string_view arguments) {
    return "unit net.py language=python\n  func 1:5 net.Net.training_step kind=python "
           "parent_class=net.Net bases=[lightning.LightningModule] params=[{name=self} "
           "{name=batch}]\n" +
           open(arguments) + close();
}

std::string deepspeed(std::string_view arguments, std::string_view inside = "") {
    return "unit ds.py language=python\n  func 1:5 ds.main kind=python\n"
           "    setting 1:9 bf16.enabled value.constant=true\n" +
           open(arguments) + std::string(inside) + close() + "    call 8:5 deepspeed.initialize\n";
}

TEST(NestedPrecisionEngine, AnotherDtypeThanTheTrainersIsAWarning) {
    EXPECT_THAT(lint("MP118", {lightning("bf16-mixed"), hook("")}), ElementsAre("warning 2"));
}

TEST(NestedPrecisionEngine, TheSameDtypeIsSilent) {
    EXPECT_THAT(lint("MP118", {lightning("bf16-mixed"), hook(kBf16Autocast)}), IsEmpty());
}

TEST(NestedPrecisionEngine, FullPrecisionIsSilent) {
    EXPECT_THAT(lint("MP118", {lightning("32-true"), hook("")}), IsEmpty());
}

TEST(NestedPrecisionEngine, TwoTrainersOfDifferentPrecisionAreSilent) {
    const std::string other =
        "unit two.py language=python\n  func 1:1 two.main kind=python\n"
        "    call 9:5 lightning.Trainer kind=constructor args=[{constant=\"'16-mixed'\" "
        "keyword=precision}]\n";
    EXPECT_THAT(lint("MP118", {lightning("bf16-mixed"), other, hook("")}), IsEmpty());
}

TEST(NestedPrecisionEngine, DeepSpeedWithAnotherDtypeIsAWarning) {
    EXPECT_THAT(lint("MP118", {deepspeed("")}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP118", {deepspeed(kBf16Autocast)}), IsEmpty());
}

TEST(NestedPrecisionEngine, AnIslandAroundCastWeightsIsAWarning) {
    const std::string off = "{bool constant=false keyword=enabled}";
    EXPECT_THAT(lint("MP118", {deepspeed(off,
                                         "call 4:9 torch.nn.Linear.forward kind=method "
                                         "args=[{module name=head} {tensor name=h}]\n")}),
                ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP118", {deepspeed(off,
                                         "call 4:9 torch.softmax op=softmax "
                                         "args=[{fp32 tensor name=h}]\n")}),
                IsEmpty());
}

TEST(NestedPrecisionEngine, AnotherFileIsSilent) {
    EXPECT_THAT(lint("MP118", {deepspeed(kBf16Autocast), python(open() + close())}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
