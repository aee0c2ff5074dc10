#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 0 and 1: amax = x.abs().max()
constexpr std::string_view kLargest =
    "    call 2:5 ?.abs kind=method op=abs args=[{tensor param=1 name=x}] result.shape=tensor\n"
    "    call 2:9 ?.max kind=method op=max args=[{tensor call=0}] result.shape=tensor result.name=amax\n";

// (x * scale).to(torch.float8_e4m3fn), where scale is the result of call 2
constexpr std::string_view kCast =
    "    call 4:5 ?.__mul__ kind=op op=mul args=[{tensor param=1 name=x} {tensor call=2 name=scale}] "
    "result.shape=tensor\n"
    "    call 4:9 ?.to kind=method args=[{tensor call=3} {e4m3 dtype constant=torch.float8_e4m3fn}] "
    "result.dtype=e4m3 result.shape=tensor\n";

std::vector<std::string> mp308(const std::string& between, std::string_view largest = kLargest) {
    return lint("MP308", {python(std::string(largest) + between + std::string(kCast))});
}

TEST(Fp8ScaleWithoutBound, LimitOverLargestMagnitude) {
    EXPECT_THAT(
        mp308("    call 3:5 ?.__truediv__ kind=op op=div args=[{constant=448} {tensor call=1 name=amax}] "
              "result.shape=tensor result.name=scale\n"),
        ElementsAre("warning 3"));
}

TEST(Fp8ScaleWithoutBound, MagnitudeOverALimitIsAProblemOnlyAsADivisor) {
    EXPECT_THAT(
        mp308("    call 3:5 ?.__truediv__ kind=op op=div args=[{tensor call=1 name=amax} {constant=448}] "
              "result.shape=tensor result.name=scale\n"),
        IsEmpty());
}

TEST(Fp8ScaleWithoutBound, BoundedMagnitudeIsSilent) {
    EXPECT_THAT(
        mp308("    call 3:5 ?.__truediv__ kind=op op=div args=[{constant=448} {tensor call=1}] "
              "result.shape=tensor result.name=scale\n",
              "    call 2:5 ?.max kind=method op=max args=[{tensor param=1 name=x}] result.shape=tensor\n"
              "    call 2:9 ?.clamp kind=method op=clamp args=[{tensor call=0} {constant=1e-12}] "
              "result.shape=tensor result.name=amax\n"),
        IsEmpty());
}

TEST(Fp8ScaleWithoutBound, ComparedMagnitudeIsSilent) {
    const std::string divided =
        "    call 3:5 ?.__truediv__ kind=op op=div args=[{constant=448} {tensor call=1 name=amax}] "
        "result.shape=tensor result.name=scale\n";
    for (const std::string test : {"?.__gt__ kind=op op=gt args=[{tensor call=1 name=amax} {constant=0}]",
                                   "torch.isinf op=isinf args=[{tensor name=scale}]",
                                   "torch.isposinf op=isposinf args=[{tensor name=scale}]"})
        EXPECT_THAT(lint("MP308", {python(std::string(kLargest) + divided + std::string(kCast) +
                                          "    call 5:5 " + test + "\n")}),
                    IsEmpty())
            << test;
}

}  // namespace
}  // namespace mp::lint::test
