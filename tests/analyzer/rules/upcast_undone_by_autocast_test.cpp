#include "tests/analyzer/rules/python_facts.hpp"
#include "tests/analyzer/rules/region_facts.hpp"

namespace mp::lint::test {
namespace {

// Calls 2 and 3 give the operands of a product, each from a parameter of this dtype.
std::string product(std::string_view op, std::string_view first, std::string_view second,
                    std::string_view was = "") {
    const auto cast = [&](std::string_view method, std::string_view to) {
        return "    call 5:9 ?." + std::string(method) + " kind=method args=[{" + std::string(was) +
               " other param=1 name=x}] result.shape=other" +
               (to.empty() ? "" : " result.dtype=" + std::string(to)) + "\n";
    };
    return cast(first == "fp32" ? "float" : "view", first) +
           cast(second == "fp32" ? "float" : "view", second) + "    call 7:9 torch." + std::string(op) +
           " op=" + std::string(op) + " args=[{other call=2} {other call=3}] result.shape=tensor\n";
}

std::vector<std::string> found(const std::string& facts,
                               std::string_view arguments = "{bf16 dtype keyword=dtype}") {
    return lint("MP123", {python(open(arguments) + facts + close())});
}

TEST(UpcastUndoneByAutocast, AProductOfTwoUpcastOperandsIsAWarning) {
    EXPECT_THAT(found(product("matmul", "fp32", "fp32")), ElementsAre("warning 7"));
    EXPECT_THAT(found(product("matmul", "", "")), IsEmpty());
}

TEST(UpcastUndoneByAutocast, OfOneOperandItsDtypeBeforeDecides) {
    EXPECT_THAT(found(product("matmul", "fp32", "")), ElementsAre("note 7"));
    EXPECT_THAT(found(product("matmul", "fp32", "", "bf16")), ElementsAre("warning 7"));
    EXPECT_THAT(found(product("matmul", "fp32", "fp32", "int64")), IsEmpty());
}

TEST(UpcastUndoneByAutocast, OnlyWhatTheRegionLowers) {
    EXPECT_THAT(found(product("softmax", "fp32", "fp32")), IsEmpty());
    EXPECT_THAT(found(product("matmul", "fp32", "fp32"), "{constant=false keyword=enabled}"), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
