#include "tests/analyzer/rules/region_facts.hpp"

// Through MP102, which asks for the dtype of an operand: std is on no CUDA list.

namespace mp::lint::test {
namespace {

std::vector<std::string> mp102(const std::vector<std::string>& units) {
    std::vector<std::string> loud;
    for (std::string& line : lint("MP102", units))
        if (!line.starts_with("note")) loud.push_back(std::move(line));
    return loud;
}

const std::string kFftOfCall =
    "call 8:9 at::fft_rfft op=fft_rfft args=[{tensor call=0}] result.shape=tensor\n";

std::string tensor_call(std::string op, std::string args) {
    return "call 7:9 at::" + op + " op=" + op + " args=[" + args + "] result.shape=tensor\n";
}

}  // namespace

TEST(TensorDTypes, OpsThatKeepTheirInputsDtypeAreFollowed) {
    EXPECT_THAT(mp102({host(tensor_call("mul", "{fp16 tensor} {fp16 tensor}") + kFftOfCall)}),
                ElementsAre("warning 8"));
    EXPECT_THAT(mp102({host(tensor_call("mul", "{fp32 tensor} {fp16 tensor}") + kFftOfCall)}), IsEmpty());
    EXPECT_THAT(mp102({host(tensor_call("mul", "{tensor} {fp16 tensor}") + kFftOfCall)}), IsEmpty());
}

TEST(TensorDTypes, OtherOpsAreUnknown) {
    EXPECT_THAT(mp102({host(tensor_call("argmax", "{fp16 tensor}") + kFftOfCall)}), IsEmpty());
    EXPECT_THAT(
        mp102({host("call 7:9 at::Tensor::to args=[{fp16 tensor} {name=dtype}] result.shape=tensor\n" +
                    kFftOfCall)}),
        IsEmpty());
}

TEST(TensorDTypes, RegionDecidesTheResultOfItsListedOps) {
    const auto in_region = [](const std::string& op) {
        return mp102({step(), inner(tensor_call(op, "{tensor name=x} {tensor}") + kFftOfCall)});
    };
    EXPECT_THAT(in_region("matmul"), ElementsAre("warning 8"));
    EXPECT_THAT(in_region("softmax"), IsEmpty());  // fp32 on CUDA
    EXPECT_THAT(in_region("add"), IsEmpty());      // as its unknown inputs
    EXPECT_THAT(mp102({inner(tensor_call("matmul", "{tensor name=x} {tensor}") + kFftOfCall)}), IsEmpty());
}

TEST(TensorDTypes, ParametersAreWhatCallersPass) {
    const std::string callee =
        "  func 20:1 spectrum usr=spectrum params=[{tensor name=y}]\n"
        "    call 21:9 at::fft_rfft op=fft_rfft args=[{tensor param=0}] result.shape=tensor\n";
    const auto passing = [&](std::string dtype) {
        return "  func 1:1 f" + dtype + " usr=f" + dtype + "\n    call 3:5 spectrum callee=spectrum args=[{" +
               dtype + " tensor}] result.shape=tensor\n";
    };
    EXPECT_THAT(mp102({"unit a.cpp\n" + passing("fp16") + callee}), ElementsAre("warning 21"));
    EXPECT_THAT(mp102({"unit a.cpp\n" + passing("fp32") + callee}), IsEmpty());
    // One caller of two: true on its path, but not everywhere.
    EXPECT_THAT(mp102({"unit a.cpp\n" + passing("fp16") + passing("fp32") + callee}),
                ElementsAre("warning 21"));
}

TEST(TensorDTypes, OwnFunctionsGiveWhatTheyReturn) {
    const std::string callee =
        "  func 20:1 net usr=net params=[{tensor name=y}]\n"
        "    call 21:9 at::matmul op=matmul args=[{fp16 tensor} {fp16 tensor}] "
        "result.shape=tensor\n"
        "    return tensor call=0\n";
    const std::string caller =
        "  func 1:1 f usr=f\n    call 7:9 net callee=net args=[{tensor}] result.shape=tensor\n   "
        " " +
        kFftOfCall;
    EXPECT_THAT(mp102({"unit a.cpp\n" + caller + callee}), ElementsAre("warning 8"));
    EXPECT_THAT(mp102({"unit a.cpp\n" + caller + callee + "    return fp32 tensor\n"}), IsEmpty());
}

TEST(TensorDTypes, RecursionEnds) {
    EXPECT_THAT(mp102({"unit a.cpp\n  func 1:1 f usr=f params=[{tensor name=x}]\n"
                       "    call 7:9 f callee=f args=[{tensor param=0}] result.shape=tensor\n    " +
                       kFftOfCall +
                       "    call 9:9 f callee=f args=[{tensor call=0}] result.shape=tensor\n    "
                       "return tensor call=2\n"}),
                IsEmpty());
}

TEST(TensorDTypes, VeryLongChainsEnd) {
    std::string facts = "call 7:9 at::mul op=mul args=[{fp16 tensor}] result.shape=tensor\n";
    for (int i = 0; i < 5000; ++i)
        facts +=
            "call 7:9 at::mul op=mul args=[{tensor call=" + std::to_string(i) + "}] result.shape=tensor\n";
    EXPECT_THAT(
        mp102({host(facts +
                    "call 8:9 at::fft_rfft op=fft_rfft args=[{tensor call=5000}] result.shape=tensor\n")}),
        IsEmpty());
}

}  // namespace mp::lint::test
