#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string sets(int line, std::string_view key, std::string_view value, int block = 0) {
    return "    setting " + std::to_string(line) + ":1 torch.backends." + std::string(key) +
           " value.constant=" + std::string(value) + " block=" + std::to_string(block) + "\n";
}

const std::string kOld = sets(2, "cuda.matmul.allow_tf32", "true");

TEST(MixedTf32Switches, DifferentValuesAreAWarning) {
    EXPECT_THAT(lint("MP607", {python(kOld + sets(3, "cuda.matmul.fp32_precision", "'ieee'"))}),
                ElementsAre("warning 3"));
    EXPECT_THAT(
        lint("MP607", {python("    call 2:1 torch.set_float32_matmul_precision args=[{constant='high'}]\n" +
                              sets(3, "cuda.matmul.fp32_precision", "'ieee'"))}),
        ElementsAre("warning 3"));
}

TEST(MixedTf32Switches, EqualValuesAreANote) {
    EXPECT_THAT(lint("MP607", {python(kOld + sets(3, "cuda.matmul.fp32_precision", "'tf32'"))}),
                ElementsAre("note 3"));
}

TEST(MixedTf32Switches, ProductsAndConvolutionsAreApart) {
    EXPECT_THAT(lint("MP607", {python(kOld + sets(3, "cudnn.conv.fp32_precision", "'ieee'"))}), IsEmpty());
}

TEST(MixedTf32Switches, TwoBranchesAreSilent) {
    EXPECT_THAT(lint("MP607", {python("    block to=[1 2]\n    block leaves\n    block leaves\n" +
                                      sets(2, "cuda.matmul.allow_tf32", "true", 1) +
                                      sets(3, "cuda.matmul.fp32_precision", "'ieee'", 2))}),
                IsEmpty());
}

TEST(MixedTf32Switches, FunctionsThatDoNotCallEachOtherAreSilent) {
    const std::string one = "unit a.py language=python\n  func 1:5 a.old kind=python\n" + kOld;
    const std::string other =
        "  func 9:5 a.now kind=python\n" + sets(10, "cuda.matmul.fp32_precision", "'ieee'");
    EXPECT_THAT(lint("MP607", {one + other}), IsEmpty());
    EXPECT_THAT(lint("MP607", {one + "    call 3:1 a.now callee=a.now\n" + other}),
                ElementsAre("warning 10"));
}

}  // namespace
}  // namespace mp::lint::test
