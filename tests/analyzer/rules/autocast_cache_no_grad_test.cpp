#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 2 and 3 behind `open()`.
constexpr const char* kNoGrad =
    "call 3:14 torch.no_grad kind=constructor\n"
    "call 3:14 torch.no_grad.__enter__ kind=method args=[{object call=2}]\n";
constexpr const char* kTeacher =
    "call 4:13 train.Net.forward kind=method args=[{module name=net} {tensor name=a}]\n";
constexpr const char* kGradAgain = "call 3:14 torch.no_grad.__exit__ kind=method args=[{object call=3}]\n";
constexpr const char* kStudent =
    "call 6:13 train.Net.forward kind=method args=[{module name=net} {tensor name=b}]\n";
constexpr const char* kOther =
    "call 6:13 train.Net.forward kind=method args=[{module name=student} {tensor name=b}]\n";

std::string both(std::string_view arguments = "", std::string_view between = "",
                 std::string_view second = kStudent) {
    return python(open(arguments) + kNoGrad + kTeacher + kGradAgain + std::string(between) +
                  std::string(second) + close());
}

TEST(AutocastCacheNoGrad, TheSameModuleTwiceIsAnErrorInOldTorch) {
    EXPECT_THAT(lint("MP112", {both()}, Profile::training, "2.1"), ElementsAre("error 6"));
}

TEST(AutocastCacheNoGrad, InNewTorchItIsANote) {
    EXPECT_THAT(lint("MP112", {both()}), ElementsAre("note 6"));
}

TEST(AutocastCacheNoGrad, AnotherModuleIsSilent) {
    EXPECT_THAT(lint("MP112", {both("", "", kOther)}), IsEmpty());
}

TEST(AutocastCacheNoGrad, AClearBetweenIsSilent) {
    EXPECT_THAT(lint("MP112", {both("", "call 5:9 torch.clear_autocast_cache\n")}), IsEmpty());
}

TEST(AutocastCacheNoGrad, WithoutTheCacheItIsSilent) {
    EXPECT_THAT(lint("MP112", {both("{bool constant=false keyword=cache_enabled}")}), IsEmpty());
}

TEST(AutocastCacheNoGrad, SeparateRegionsAreSilent) {
    const std::string second =
        "call 8:10 torch.autocast kind=constructor args=[{constant=\"'cuda'\"}]\n"
        "call 8:10 torch.autocast.__enter__ kind=method args=[{object call=7} "
        "{constant=\"'cuda'\"}]\n" +
        std::string(kStudent) + "call 8:10 torch.autocast.__exit__ kind=method args=[{object call=8}]\n";
    EXPECT_THAT(lint("MP112", {python(open() + kNoGrad + kTeacher + kGradAgain + close() + second)},
                     Profile::training, "2.1"),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
