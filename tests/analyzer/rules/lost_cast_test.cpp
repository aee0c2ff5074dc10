#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 0 and 1: `for p in model.parameters():`
std::string in_loop(std::string_view cast, std::string_view method = "parameters") {
    return python(
        "    call 2:14-30 ?." + std::string(method) +
        " kind=method args=[{other param=0 name=model}] result.shape=other\n"
        "    call 2:9-10 ?.__next__ kind=op args=[{other call=0}] result.shape=other result.name=p\n" +
        std::string(cast));
}

constexpr std::string_view kFloat =
    "    call 3:13-22 ?.float kind=method args=[{other call=1 name=p}] result.dtype=fp32 result.shape=other "
    "result.name=p";

TEST(LostCast, UnusedCastOfAParameterIsAnError) {
    EXPECT_THAT(lint("MP606", {in_loop(std::string(kFloat) + " unused\n")}), ElementsAre("error 3"));
    EXPECT_THAT(lint("MP606", {in_loop(std::string(kFloat) + " unused\n", "named_buffers")}),
                ElementsAre("error 3"));
    EXPECT_THAT(
        lint("MP606", {in_loop("    call 3:9-22 ?.half kind=method args=[{other name=p.data span=3:9-15}] "
                               "result.dtype=fp16 unused\n")}),
        ElementsAre("error 3"));
}

TEST(LostCast, ResultThatIsReadIsSilent) {
    EXPECT_THAT(lint("MP606", {in_loop(std::string(kFloat) + "\n")}), IsEmpty());
}

TEST(LostCast, MoveToADeviceIsNoCast) {
    EXPECT_THAT(lint("MP606", {in_loop("    call 3:13-22 ?.to kind=method args=[{other call=1 name=p} {other "
                                       "name=device}] result.shape=other unused\n")}),
                IsEmpty());
}

TEST(LostCast, OtherObjectsAreSilent) {
    EXPECT_THAT(
        lint("MP606", {python("    call 3:13-22 ?.float kind=method args=[{other param=0 name=model}] "
                              "result.dtype=fp32 unused\n")}),
        IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
