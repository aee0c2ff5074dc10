#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string inside(std::string_view outer, std::string_view inner) {
    const std::string device = "{constant=\"'" + std::string(outer) + "'\"}";
    return python("call 2:10 torch.autocast kind=constructor args=[" + device + "]\n" +
                  "call 2:10 torch.autocast.__enter__ kind=method args=[{object call=0} " + device + "]\n" +
                  std::string(inner) +
                  "call 2:10 torch.autocast.__exit__ kind=method args=[{object call=1}]\n");
}

constexpr const char* kCudaOff =
    "call 4:14 torch.cuda.amp.autocast kind=constructor args=[{bool constant=false "
    "keyword=enabled}]\n";

TEST(AutocastDeviceMismatch, DisablingCudaInAnHpuRegionIsAWarning) {
    const auto found = findings("MP105", {inside("hpu", kCudaOff)});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].span.line, 4u);
    EXPECT_THAT(found[0].message, HasSubstr("which stays on"));
}

TEST(AutocastDeviceMismatch, TheSameDeviceIsSilent) {
    EXPECT_THAT(lint("MP105", {inside("cuda", kCudaOff)}), IsEmpty());
}

TEST(AutocastDeviceMismatch, AVariableDeviceIsSilent) {
    EXPECT_THAT(lint("MP105", {inside("hpu",
                                      "call 4:14 torch.autocast kind=constructor args=[{other "
                                      "name=device_type} {bool constant=false "
                                      "keyword=enabled}]\n")}),
                IsEmpty());
}

TEST(AutocastDeviceMismatch, WithoutARegionAroundItIsSilent) {
    EXPECT_THAT(lint("MP105", {python(kCudaOff)}), IsEmpty());
}

TEST(AutocastDeviceMismatch, CodeThatAskedForTheDeviceIsSilent) {
    const std::string facts =
        "block to=[{1 condition=\"torch.cuda.is_available()\"} {2 "
        "condition=\"torch.cuda.is_available()\" when=false}]\n"
        "block to=[2]\nblock leaves\n" +
        std::string("call 3:12 torch.cuda.is_available\n");
    const std::string device = "{constant=\"'hpu'\"}";
    EXPECT_THAT(
        lint("MP105", {python(facts.substr(0, facts.find("call")) +
                              "call 2:10 torch.autocast kind=constructor args=[" + device + "]\n" +
                              "call 2:10 torch.autocast.__enter__ kind=method args=[{object call=0} " +
                              device + "]\ncall 3:12 torch.cuda.is_available\n" +
                              "call 4:14 torch.cuda.amp.autocast kind=constructor args=[{bool "
                              "constant=false keyword=enabled}] block=1\n"
                              "call 2:10 torch.autocast.__exit__ kind=method args=[{object call=1}] "
                              "block=2\n")}),
        IsEmpty());
}

// A model that is moved, then runs in a region of "cuda".
std::string moved(std::string_view moves, std::string_view later = "") {
    return python(open() + std::string(moves) +
                  "call 3:9 ?.__call__ kind=method args=[{other name=net} {other name=x}]\n" + close() +
                  std::string(later));
}

constexpr const char* kToMps =
    "call 1:9 ?.to kind=method args=[{other name=net} {constant=\"'mps:0'\"}] result.name=net\n";
constexpr const char* kToCuda = "call 1:9 ?.cuda kind=method args=[{other name=net}] result.name=net\n";

TEST(AutocastDeviceMismatch, AModelOnAnotherDeviceIsAWarning) {
    EXPECT_THAT(lint("MP105", {moved(kToMps)}), ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP105", {moved("call 1:9 ?.to kind=method args=[{module name=net} "
                                     "{constant=\"'cpu'\" keyword=device}]\n")}),
                ElementsAre("warning 2"));
}

TEST(AutocastDeviceMismatch, AModelOnTheDeviceOrOnSeveralIsSilent) {
    EXPECT_THAT(lint("MP105", {moved("")}), IsEmpty());
    EXPECT_THAT(lint("MP105", {moved(kToCuda)}), IsEmpty());
    EXPECT_THAT(lint("MP105", {moved("", kToMps)}), IsEmpty());
    EXPECT_THAT(lint("MP105", {moved(std::string(kToMps) + kToCuda)}), IsEmpty());
    EXPECT_THAT(lint("MP105", {moved("call 1:9 ?.to kind=method args=[{other name=net} {other "
                                     "name=device}] result.name=net\n")}),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
