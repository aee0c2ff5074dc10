#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> set(std::string name, std::string value) {
    return lint("MP408", {python("    setting 3:1-60 torch.backends.cuda.matmul." + name +
                                 " value.constant=" + value + "\n")});
}

TEST(ReducedPrecisionReduction, AccumulationIsAWarningJoiningANote) {
    EXPECT_THAT(set("allow_fp16_accumulation", "true"), ElementsAre("warning 3"));
    EXPECT_THAT(set("allow_fp16_reduced_precision_reduction", "true"), ElementsAre("note 3"));
    EXPECT_THAT(set("allow_bf16_reduced_precision_reduction", "true"), ElementsAre("note 3"));
}

TEST(ReducedPrecisionReduction, OffAndUnknownAreSilent) {
    EXPECT_THAT(set("allow_fp16_accumulation", "false"), IsEmpty());
    EXPECT_THAT(lint("MP408", {python("    setting 3:1 torch.backends.cuda.matmul."
                                      "allow_fp16_accumulation value.name=fast\n")}),
                IsEmpty());
    EXPECT_THAT(set("allow_tf32", "true"), IsEmpty());
}

TEST(ReducedPrecisionReduction, CppSetsItOnTheContext) {
    const auto call = [](std::string value) {
        return lint("MP408", {host("    call 5:3 at::Context::setAllowFP16ReductionCuBLAS "
                                   "kind=method args=[{object} {bool constant=" +
                                   value + "}]\n")});
    };
    EXPECT_THAT(call("true"), ElementsAre("note 5"));
    EXPECT_THAT(call("false"), IsEmpty());
}

// A Linear of so many inputs and an fp16 region.
std::string product(std::string_view terms, std::string_view settings = "", std::string_view dtype = "fp16") {
    return python(open("{" + std::string(dtype) + " dtype keyword=dtype}") + close() +
                  "    call 5:5 torch.nn.Linear kind=constructor args=[{constant=" + std::string(terms) +
                  "} {constant=8}]\n" + std::string(settings));
}

TEST(ReducedPrecisionReduction, TheDefaultWithLongFp16ProductsIsANote) {
    EXPECT_THAT(lint("MP408", {product("8192")}), ElementsAre("note 2"));
    EXPECT_THAT(lint("MP408", {product("8192")}, Profile::inference), IsEmpty());
}

TEST(ReducedPrecisionReduction, TheDefaultWithShortOrBf16ProductsIsSilent) {
    EXPECT_THAT(lint("MP408", {product("1024")}), IsEmpty());
    EXPECT_THAT(lint("MP408", {product("8192", "", "bf16")}), IsEmpty());
}

TEST(ReducedPrecisionReduction, AProductOfAnotherProgramIsSilent) {
    EXPECT_THAT(lint("MP408", {python(open() + close()),
                               "unit other.py language=python\n  func 1:5 other.f kind=python\n"
                               "    call 5:5 torch.nn.Linear kind=constructor "
                               "args=[{constant=8192} {constant=8}]\n"}),
                IsEmpty());
}

TEST(ReducedPrecisionReduction, AFlagThatTheProgramSetsIsNoDefault) {
    const std::string key =
        "    setting 3:1 torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction ";
    EXPECT_THAT(lint("MP408", {product("8192", key + "value.constant=false\n")}), IsEmpty());
    EXPECT_THAT(lint("MP408", {product("8192", key + "value.name=fast\n")}), IsEmpty());
}

constexpr const char* kProduct =
    "    call 7:5 cublasGemmEx args=[{constant=CUDA_R_16F} {constant=CUBLAS_COMPUTE_32F}]\n";

std::string mode(std::string_view value) {
    return "    call 5:5 cublasSetMathMode args=[{object} {" + std::string(value) + "}]\n";
}

TEST(ReducedPrecisionReduction, AMathModeOfCublasThatAllowsItIsANote) {
    EXPECT_THAT(lint("MP408", {host(mode("constant=CUBLAS_DEFAULT_MATH") + kProduct)}),
                ElementsAre("note 5"));
    EXPECT_THAT(lint("MP408", {host(kProduct)}), ElementsAre("note 7"));
}

TEST(ReducedPrecisionReduction, AMathModeThatForbidsItOrIsAnOptionIsSilent) {
    EXPECT_THAT(lint("MP408", {host(mode("constant=16 "
                                         "text=CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION") +
                                    kProduct)}),
                IsEmpty());
    EXPECT_THAT(lint("MP408", {host(mode("name=math_mode") + kProduct)}), IsEmpty());
    EXPECT_THAT(lint("MP408", {host(mode("constant=CUBLAS_DEFAULT_MATH"))}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
