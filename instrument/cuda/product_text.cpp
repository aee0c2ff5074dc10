#include "instrument/cuda/product_text.hpp"

#include <utility>

#include "instrument/cuda/dtypes.hpp"

namespace mp::raw {
namespace {

std::string sums_of(const Product& p) {
    switch (p.compute) {
        case abi::kCompute16F:
        case abi::kCompute16FPedantic:
            return "fp16 sums";
        case abi::kCompute32FFast16F:
            return "fp32 sums of fp16 inputs";
        case abi::kCompute32FFast16BF:
            return "fp32 sums of bf16 inputs";
        case abi::kCompute64F:
        case abi::kCompute64FPedantic:
            return "fp64 sums";
        case abi::kCompute32FFastTF32:
            return p.tf32 ? "fp32 sums of TF32 inputs" : "fp32 sums";
        case abi::kCompute32FEmulated:
            return "fp32 sums, emulated with bf16";
        case abi::kCompute64FEmulated:
            return "fp64 sums, emulated";
        case abi::kCompute32I:
        case abi::kCompute32IPedantic:
            return "int32 sums";
        case abi::kCompute32F:
        case abi::kCompute32FPedantic:
            return p.tf32 ? "fp32 sums of inputs that the handle's mode rounds" : "fp32 sums";
        case -1:
            return "unknown sums";
        default:
            return "compute type " + std::to_string(p.compute);
    }
}

std::string split_of(const Product& p) {
    if (p.parts <= 1) return {};
    return ", " + std::to_string(p.parts) + " parts added in " +
           (p.splits_in_result()                     ? "the result"
            : p.scheme & abi::kLtReduceInComputeType ? "the format of the sums"
                                                     : "an unknown format");
}

std::string epilogue_of(const Product& p) {
    static constexpr std::pair<std::uint32_t, const char*> kNames[] = {
        {abi::kLtEpilogueBias, "bias"},
        {abi::kLtEpilogueRelu, "ReLU"},
        {abi::kLtEpilogueGelu, "GELU"},
        {abi::kLtEpilogueReluBackward, "backward of ReLU"},
        {abi::kLtEpilogueGeluBackward, "backward of GELU"},
        {abi::kLtEpilogueBiasGradient, "gradient of the bias"},
        {abi::kLtEpilogueBiasGradientA, "gradient of the bias from A"},
        {abi::kLtEpilogueBiasGradientB, "gradient of the bias from B"}};
    std::string text;
    for (const auto& [bit, name] : kNames)
        if (p.epilogue & bit) text += (text.empty() ? ", " : " and ") + std::string(name);
    return text;
}

}  // namespace

std::string how_of(const Product& product) {
    return sums_of(product) + split_of(product) + epilogue_of(product) +
           (product.has_scales ? ", scaled" : "");
}

}  // namespace mp::raw
