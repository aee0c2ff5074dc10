#pragma once

#include <string_view>

#include "kernels/base/symbol.hpp"

namespace mp {

// A canonical operator name, independent of the framework that spells it: ATen's base name in lower
// case without namespace, overload or trailing underscore ("softmax", "conv2d", "addmm", "exp",
// "all_reduce", "gemm"). Empty means unknown: a value that is counted, never guessed.
class Op {
public:
    constexpr Op() = default;
    explicit Op(std::string_view canonical) : name_(canonical) {}
    constexpr explicit Op(Symbol canonical) : name_(canonical) {}

    bool known() const { return !name_.empty(); }
    std::string_view name() const { return name_.str(); }
    Symbol symbol() const { return name_; }
    friend auto operator<=>(Op, Op) = default;

private:
    Symbol name_;
};

// The op behind a qualified C++ or Python spelling: "torch::nn::functional::softmax", "at::Tensor::exp_",
// "torch.nn.functional.softmax", "hexp", "cublasGemmEx", "ncclAllReduce". Unknown spellings give an
// unknown Op. Source of the spellings: docs of PyTorch, cuBLAS, NCCL and the CUDA math API.
Op op_from_spelling(std::string_view qualified_name);

// The op behind a bare name in a list: "softmax", "divide", "norm.Scalar", "truediv"
// (HMP's name for Tensor.__truediv__); qualified spellings too. In code a bare name proves nothing.
Op op_from_name(std::string_view name);

// Whether the spelling is the in-place form of an ATen op ("exp_", "at::Tensor::add_").
bool is_in_place(std::string_view qualified_name);

}  // namespace mp
