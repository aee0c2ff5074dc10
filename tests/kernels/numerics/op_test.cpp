#include "kernels/numerics/op.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace mp {
namespace {

using Cases = std::initializer_list<std::pair<std::string_view, std::string_view>>;

void expect_ops(Cases cases) {
    for (const auto& [spelling, op] : cases) EXPECT_EQ(op_from_spelling(spelling).name(), op) << spelling;
}

TEST(Op, ATenInCppIsKnownByItsBaseName) {
    expect_ops({{"torch::softmax", "softmax"},
                {"at::softmax", "softmax"},
                {"::at::softmax", "softmax"},
                {"torch::nn::functional::softmax", "softmax"},
                {"at::Tensor::exp", "exp"},
                {"at::Tensor::exp_", "exp"},
                {"at::exp_out", "exp"},
                {"torch::special::expm1", "expm1"},
                {"at::special_expm1", "expm1"},
                {"torch::special::log_softmax", "log_softmax"},
                {"torch::special::entr", "special_entr"},
                {"torch::linalg::svd", "linalg_svd"},
                {"torch::fft::rfft", "fft_rfft"},
                {"at::cross_entropy_loss", "cross_entropy"},
                {"aten::norm.ScalarOpt_dim", "norm"},
                {"torch::nn::functional::binary_cross_entropy", "binary_cross_entropy"},
                {"torch::nn::BCELossImpl::forward", "binary_cross_entropy"},
                {"torch::nn::LayerNormImpl::forward", "layer_norm"}});
}

TEST(Op, PythonSpellingsMeanTheSameOps) {
    expect_ops({{"torch.exp", "exp"},
                {"torch.nn.functional.cross_entropy", "cross_entropy"},
                {"torch.Tensor.__matmul__", "matmul"},
                {"torch.Tensor.__itruediv__", "div"},
                {"torch.Tensor.add_", "add"},
                {"torch.linalg.vector_norm", "linalg_vector_norm"},
                {"torch.fft.fft", "fft_fft"},
                {"torch.special.expit", "sigmoid"},
                {"torch.ops.aten.sum.dim_IntList", "sum"},
                {"torch.true_divide", "div"},
                {"torch.nn.BCEWithLogitsLoss.forward", "binary_cross_entropy_with_logits"},
                {"torch.distributed.all_reduce", "all_reduce"},
                {"torch.distributed.reduce_scatter_tensor", "reduce_scatter"}});
}

TEST(Op, CudaIntrinsicsAndMathFunctionsAreOps) {
    expect_ops({{"hexp", "exp"},           {"h2exp", "exp"},
                {"expf", "exp"},           {"std::exp", "exp"},
                {"__expf", "exp"},         {"hlog", "log"},
                {"hrsqrt", "rsqrt"},       {"h2rsqrt", "rsqrt"},
                {"rsqrtf", "rsqrt"},       {"hsqrt", "sqrt"},
                {"hrcp", "reciprocal"},    {"__hdiv", "div"},
                {"__h2div", "div"},        {"__hadd", "add"},
                {"__hadd2", "add"},        {"__hfma", "fma"},
                {"__hfma2_relu", "fma"},   {"__hmax", "maximum"},
                {"operator+", "add"},      {"at::operator*", "mul"},
                {"c10::operator/", "div"}, {"at::Tensor::operator+=", "add"},
                {"at::operator-", "sub"},  {"at::Tensor::operator-", "neg"}});
}

TEST(Op, LibrariesAreOps) {
    expect_ops({{"cublasGemmEx", "gemm"},
                {"cublasHgemm", "gemm"},
                {"cublasSgemm_v2", "gemm"},
                {"cublasSgemm_v2_64", "gemm"},
                {"cublasGemmStridedBatchedEx", "gemm"},
                {"cublasLtMatmul", "gemm"},
                {"cublasDotEx", "dot"},
                {"cudnnSoftmaxForward", "softmax"},
                {"ncclAllReduce", "all_reduce"},
                {"ncclReduceScatter", "reduce_scatter"},
                {"ncclBcast", "broadcast"},
                {"MPI_Allreduce", "all_reduce"},
                {"c10d::ProcessGroupNCCL::allreduce", "all_reduce"},
                {"c10d::ProcessGroup::_allgather_base", "all_gather"}});
}

// In code, a name identifies an op only together with its namespace or module.
TEST(Op, WhatMerelySoundsLikeAnOpIsUnknown) {
    for (const std::string_view spelling : {"softmax",
                                            "mylib::softmax",
                                            "mylib::torch::exp",
                                            "gemm",
                                            "layer_norm",
                                            "Model::linear",
                                            "torch::nn::LayerNormImpl",
                                            "torch::nn::LayerNorm",
                                            "torch::nn::ModelImpl::forward",
                                            "torch::jit::exp",
                                            "at::native::exp",
                                            "torch.nn.LayerNorm",
                                            "torch.utils.data.sum",
                                            "std::operator+",
                                            "std::softmax",
                                            "operator-",
                                            "operator==",
                                            "cublasCreate_v2",
                                            "ncclCommInitRank",
                                            "all_reduce",
                                            "add",
                                            "max",
                                            "at::",
                                            "torch.",
                                            "",
                                            "::",
                                            "_",
                                            "__",
                                            "at::_",
                                            "at::exp__bad"})
        EXPECT_FALSE(op_from_spelling(spelling).known()) << spelling;
}

TEST(Op, AListMayNameAnOpBare) {
    EXPECT_EQ(op_from_name("softmax").name(), "softmax");
    EXPECT_EQ(op_from_name("truediv").name(), "div");
    EXPECT_EQ(op_from_name("divide"), op_from_name("div"));
    EXPECT_EQ(op_from_name("norm.Scalar").name(), "norm");
    EXPECT_EQ(op_from_name("torch.nn.functional.relu").name(), "relu");
    EXPECT_EQ(op_from_name("all_reduce").name(), "all_reduce");
    EXPECT_FALSE(op_from_name("frobnicate").known());
    EXPECT_FALSE(op_from_name("").known());
}

TEST(Op, InPlaceFormsAreRecognised) {
    for (const std::string_view spelling : {"exp_", "at::Tensor::add_", "torch.Tensor.mul_", "torch.relu_",
                                            "torch.Tensor.__iadd__", "at::Tensor::operator+="})
        EXPECT_TRUE(is_in_place(spelling)) << spelling;
    for (const std::string_view spelling :
         {"exp", "at::Tensor::add", "my_variable_", "torch.Tensor.__add__", "torch.Tensor.__invert__",
          "torch.Tensor.__radd__", "operator+", "operator==", "_", ""})
        EXPECT_FALSE(is_in_place(spelling)) << spelling;
}

}  // namespace
}  // namespace mp
