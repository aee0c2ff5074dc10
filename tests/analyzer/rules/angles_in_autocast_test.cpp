#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 2 to 4: positions from 0 to `last`, their product with frequencies, and what is taken of it.
std::string angles(std::string_view last, std::string_view product, std::string_view taken) {
    return "    call 5:9 torch.arange kind=constructor args=[{" + std::string(last) +
           "}] result.shape=tensor result.dtype=fp32\n"
           "    call 7:9 torch." +
           std::string(product) + " op=" + std::string(product) +
           " args=[{tensor fp32 call=2} {tensor fp32 name=frequencies}] result.shape=tensor\n"
           "    call 8:9 torch." +
           std::string(taken) + " op=" + std::string(taken) + " args=[{tensor call=3}] result.shape=tensor\n";
}

std::vector<std::string> found(const std::string& facts,
                               std::string_view arguments = "{bf16 dtype keyword=dtype}") {
    return lint("MP124", {python(open(arguments) + facts + close())});
}

TEST(AnglesInAutocast, OfPositionsIsAWarning) {
    EXPECT_THAT(found(angles("name=n", "bmm", "cos")), ElementsAre("warning 7"));
    EXPECT_THAT(found(angles("constant=4096", "matmul", "sin")), ElementsAre("warning 7"));
}

TEST(AnglesInAutocast, OfFewPositionsIsANote) {
    EXPECT_THAT(found(angles("constant=256", "matmul", "sin")), ElementsAre("note 7"));
}

TEST(AnglesInAutocast, OnlyLoweredProductsOfAngles) {
    EXPECT_THAT(found(angles("name=n", "outer", "cos")), IsEmpty());
    EXPECT_THAT(found(angles("name=n", "matmul", "relu")), IsEmpty());
    EXPECT_THAT(found(angles("name=n", "matmul", "cos"), "{constant=false keyword=enabled}"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
