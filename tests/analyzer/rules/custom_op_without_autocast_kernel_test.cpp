#include "tests/analyzer/rules/python_facts.hpp"

namespace mp::lint::test {
namespace {

std::string op(std::string_view facts = "", std::string_view second = "tensor") {
    return "unit ops.py language=python\n  func 7:5 ops.roi kind=python "
           "annotations=[\"torch.library.custom_op('mine::roi', mutates_args=())\"] "
           "params=[{tensor name=x} {" +
           std::string(second) + " name=boxes}]\n" + std::string(facts);
}

constexpr const char* kUse = "call 4:9 ops.roi callee=ops.roi args=[{other name=x}]\n";
constexpr const char* kRegister =
    "    call 20:1 torch.library.register_autocast args=[{object constant=\"'mine::roi'\"} {object "
    "constant=\"'cuda'\"}]\n";

TEST(CustomOpWithoutAutocastKernel, AnOpUsedInARegionIsANote) {
    EXPECT_THAT(lint("MP115", {op(), python(open() + kUse + close())}), ElementsAre("note 7"));
}

TEST(CustomOpWithoutAutocastKernel, ThroughTorchOpsItIsFoundToo) {
    EXPECT_THAT(lint("MP115", {op(), python(open() + "call 4:9 torch.ops.mine.roi\n" + close())}),
                ElementsAre("note 7"));
}

TEST(CustomOpWithoutAutocastKernel, OutsideARegionItIsSilent) {
    EXPECT_THAT(lint("MP115", {op(), python(kUse)}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, ARegisteredRuleIsSilent) {
    EXPECT_THAT(lint("MP115", {op(),
                               "unit reg.py language=python\n  func 1:1 reg.<module> "
                               "kind=python\n" +
                                   std::string(kRegister),
                               python(open() + kUse + close())}),
                IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, AnOpOfOneTensorIsSilent) {
    EXPECT_THAT(lint("MP115", {op("", "int64"), python(open() + kUse + close())}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, ABodyThatCastsIsSilent) {
    EXPECT_THAT(lint("MP115", {op("    call 8:5 torch.Tensor.float kind=method args=[{tensor "
                                  "name=x}]\n"),
                               python(open() + kUse + close())}),
                IsEmpty());
}

// An op of C++: its kernel, how it is registered, and `extra` facts of the kernel.
std::string cpp_op(std::string_view registrations, std::string_view facts = "",
                   std::string_view second = "tensor") {
    return "unit ops.cpp\n  func 5:1 pool_cuda usr=pool_cuda params=[{tensor name=x} {" +
           std::string(second) + " name=boxes}]\n" + std::string(facts) +
           "  func 20:1 TORCH_LIBRARY_init_mine usr=def\n"
           "    call 20:5 torch::Library::def kind=method args=[{object} {text=\"\\\"pool(Tensor x, "
           "Tensor boxes) -> Tensor\\\"\"}]\n" +
           std::string(registrations);
}

std::string impl(std::string_view key) {
    return "  func 30:1 TORCH_LIBRARY_IMPL_init_mine_" + std::string(key) + "_2 usr=impl" + std::string(key) +
           "\n    call 30:5 torch::Library::impl kind=method args=[{object} {text=\"\\\"pool\\\"\"}] "
           "lambdas=[pool_cuda]\n";
}

std::string use(std::string_view arguments = "{tensor name=x} {tensor name=boxes}") {
    return python(open() + "    call 4:9 torch.ops.mine.pool args=[" + std::string(arguments) + "]\n" +
                  close());
}

constexpr const char* kDispatch =
    "    call 6:5 pool_cuda::(lambda) kind=method macro=AT_DISPATCH_FLOATING_TYPES\n";

TEST(CustomOpWithoutAutocastKernel, AKernelOfCppUsedInARegionIsANote) {
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA")), use()}), ElementsAre("note 5"));
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA"), kDispatch), use()}), ElementsAre("note 5"));
}

TEST(CustomOpWithoutAutocastKernel, AHalfInputWithoutAHalfInstanceIsAWarning) {
    const std::string half = use("{fp16 tensor name=x} {tensor name=boxes}");
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA"), kDispatch), half}), ElementsAre("warning 5"));
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA")), half}), ElementsAre("note 5"));
}

TEST(CustomOpWithoutAutocastKernel, AnAutocastKernelOfCppIsSilent) {
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA") + impl("Autocast")), use()}), IsEmpty());
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA") + impl("AutocastCUDA")), use()}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, AnOpOfCppWithoutAKernelOfTheDeviceIsSilent) {
    EXPECT_THAT(lint("MP115", {cpp_op(""), use()}), IsEmpty());
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CPU")), use()}), IsEmpty());
}

TEST(CustomOpWithoutAutocastKernel, EqualInputsAndIndicesOfCppAreSilent) {
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA")), use("{fp32 tensor name=x} {fp32 tensor name=boxes}")}),
                IsEmpty());
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA"),
                                      "    call 6:5 at::TensorBase::data_ptr kind=method "
                                      "args=[{tensor param=1}] result.dtype=int64 "
                                      "result.shape=pointer\n"),
                               use()}),
                IsEmpty());
    EXPECT_THAT(lint("MP115", {cpp_op(impl("CUDA"), "", "int64"), use()}), IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
