#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::vector<std::string> mp603(std::string_view facts) { return lint("MP603", {python(facts)}); }

const std::string kOn = "    setting 2:1-48 torch.backends.cuda.matmul.allow_tf32 value.constant=true\n";
const std::string kInverse =
    "    call 3:1-8 torch.matmul op=matmul args=[{tensor name=x} {tensor name=x}] result.shape=tensor\n"
    "    call 3:9-30 torch.linalg.inv op=linalg_inv args=[{tensor call=0}]\n";

TEST(Tf32Global, ASwitchAloneIsANote) {
    EXPECT_THAT(mp603(kOn), ElementsAre("note 2"));
    EXPECT_THAT(mp603("    setting 2:1 os.environ.NVIDIA_TF32_OVERRIDE value.constant=\"'1'\"\n"),
                ElementsAre("note 2"));
    EXPECT_THAT(mp603("    call 2:1-40 torch.set_float32_matmul_precision args=[{constant=\"'high'\"}]\n"),
                ElementsAre("note 2"));
}

TEST(Tf32Global, ASensitiveOperationMakesItAWarning) {
    EXPECT_THAT(mp603(kOn + kInverse), ElementsAre("warning 2"));
}

TEST(Tf32Global, SolversThemselvesDoNotRunInTf32) {
    EXPECT_THAT(mp603(kOn + "    call 3:9 torch.linalg.inv op=linalg_inv args=[{tensor name=x}]\n"),
                ElementsAre("note 2"));
}

TEST(Tf32Global, DoublePrecisionIsNotTouched) {
    EXPECT_THAT(mp603(kOn + "    call 3:9 torch.linalg.inv op=linalg_inv args=[{fp64 tensor name=x}]\n"),
                ElementsAre("note 2"));
}

TEST(Tf32Global, TheOperationMayBeInACallee) {
    const std::string callee = "unit g.py language=python\n  func 1:5 g.inverse kind=python\n" + kInverse;
    EXPECT_THAT(lint("MP603", {python(kOn + "    call 4:5 g.inverse callee=g.inverse\n"), callee}),
                ElementsAre("warning 2"));
    EXPECT_THAT(lint("MP603", {python(kOn), callee}), ElementsAre("note 2"))
        << "another program in the same tree";
}

TEST(Tf32Global, OffAndUnknownAreSilent) {
    EXPECT_THAT(mp603("    setting 2:1 torch.backends.cuda.matmul.allow_tf32 value.constant=false\n"),
                IsEmpty());
    EXPECT_THAT(mp603("    setting 2:1 torch.backends.cuda.matmul.allow_tf32 value.name=fast\n"), IsEmpty());
    EXPECT_THAT(mp603("    setting 2:1 torch.backends.cudnn.allow_tf32 value.constant=true\n"), IsEmpty());
    EXPECT_THAT(mp603("    call 2:1 torch.set_float32_matmul_precision args=[{constant=\"'highest'\"}]\n"),
                IsEmpty());
}

TEST(Tf32Global, CppSetsItOnTheContextOrOnCublas) {
    EXPECT_THAT(lint("MP603", {host("    call 5:3 at::Context::setAllowTF32CuBLAS kind=method "
                                    "args=[{object} {constant=true}]\n")}),
                ElementsAre("note 5"));
    EXPECT_THAT(lint("MP603", {host("    call 5:3 cublasSetMathMode args=[{object} "
                                    "{constant=CUBLAS_TF32_TENSOR_OP_MATH}]\n")}),
                ElementsAre("note 5"));
}

}  // namespace
}  // namespace mp::lint::test
