#include "tests/analyzer/rules/rule_test.hpp"

namespace mp::lint::test {
namespace {

struct GemmCall {
    std::string scale = "fp16 pointer";
    std::string k = "int32 name=k";
    std::string compute = "constant=CUBLAS_COMPUTE_16F";
};

std::string gemm_ex(const GemmCall& g) {
    const std::string i = " {int32}";
    return "call 7:10 cublasGemmEx args=[{pointer}" + i + i + i + i + " {" + g.k + "} {" + g.scale +
           "} {fp16 pointer} {constant=CUDA_R_16F}" + i + " {fp16 pointer} {constant=CUDA_R_16F}" + i + " {" +
           g.scale + "} {fp16 pointer} {constant=CUDA_R_16F}" + i + " {" + g.compute +
           "} {constant=CUBLAS_GEMM_DEFAULT}]";
}

std::vector<std::string> mp406(std::string_view fact, Profile profile = Profile::training) {
    return lint("MP406", {kernel(fact)}, profile);
}

TEST(CublasCompute16f, HalfComputeIsAWarning) {
    EXPECT_THAT(mp406(gemm_ex({})), ElementsAre("warning 7"));
    EXPECT_THAT(mp406(gemm_ex({.compute = "constant=CUBLAS_COMPUTE_16F_PEDANTIC"})),
                ElementsAre("warning 7"));
}

TEST(CublasCompute16f, LegacyComputeTypeIsFoundByItsPosition) {
    EXPECT_THAT(mp406(gemm_ex({.compute = "constant=CUDA_R_16F"})), ElementsAre("warning 7"));
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp32 pointer", .compute = "constant=CUDA_R_32F"})), IsEmpty());
}

TEST(CublasCompute16f, FloatComputeAndUnknownComputeAreSilent) {
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp32 pointer", .compute = "constant=CUBLAS_COMPUTE_32F"})),
                IsEmpty());
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp32 pointer", .compute = "name=compute_type"})), IsEmpty());
}

TEST(CublasCompute16f, ScaleOfAnotherTypeIsAnError) {
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp32 pointer"})), ElementsAre("error 7"));
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp16 pointer", .compute = "constant=CUBLAS_COMPUTE_32F"})),
                ElementsAre("error 7"));
}

TEST(CublasCompute16f, ScaleThroughVoidPointerIsNotGuessed) {
    EXPECT_THAT(mp406(gemm_ex({.scale = "pointer"})), ElementsAre("warning 7"));
    EXPECT_THAT(mp406(gemm_ex({.scale = "pointer", .compute = "constant=CUBLAS_COMPUTE_32F"})), IsEmpty());
}

TEST(CublasCompute16f, ShortConstantKIsANote) {
    EXPECT_THAT(mp406(gemm_ex({.k = "int32 constant=64"})), ElementsAre("note 7"));
    EXPECT_THAT(mp406(gemm_ex({.k = "int32 constant=65"})), ElementsAre("warning 7"));
}

TEST(CublasCompute16f, InferenceProfileKeepsOnlyTheWrongScale) {
    EXPECT_THAT(mp406(gemm_ex({}), Profile::inference), ElementsAre("note 7"));
    EXPECT_THAT(mp406(gemm_ex({.scale = "fp32 pointer"}), Profile::inference), ElementsAre("error 7"));
}

TEST(CublasCompute16f, HgemmIsHalfByItsName) {
    EXPECT_THAT(mp406("call 7:1 cublasHgemm args=[{pointer}]"), ElementsAre("warning 7"));
    EXPECT_THAT(mp406("call 7:1 cublasHgemmStridedBatched_64 args=[{pointer}]"), ElementsAre("warning 7"));
    EXPECT_THAT(mp406("call 7:1 cublasSgemm args=[{pointer}]"), IsEmpty());
    EXPECT_THAT(mp406("call 7:1 cublasSgemmEx args=[{pointer} {constant=CUDA_R_16F}]"), IsEmpty());
}

TEST(CublasCompute16f, CublasLtDescriptor) {
    const auto create = [](std::string compute, std::string scale) {
        return mp406("call 7:1 cublasLtMatmulDescCreate args=[{pointer} {constant=" + compute +
                     "} {constant=" + scale + "}]");
    };
    EXPECT_THAT(create("CUBLAS_COMPUTE_16F", "CUDA_R_16F"), ElementsAre("warning 7"));
    EXPECT_THAT(create("CUBLAS_COMPUTE_16F", "CUDA_R_32F"), ElementsAre("error 7"));
    EXPECT_THAT(create("CUBLAS_COMPUTE_32F", "CUDA_R_16F"), ElementsAre("error 7"));
    EXPECT_THAT(create("CUBLAS_COMPUTE_32F", "CUDA_R_32F"), IsEmpty());
}

TEST(CublasCompute16f, TraitThatChoosesIt) {
    const auto trait = [](std::string value, Profile profile = Profile::training) {
        return mp406("type 7:1 cublasComputeType_t alias=compute_type args=[{text=" + value + "}]", profile);
    };
    EXPECT_THAT(trait("CUBLAS_COMPUTE_16F"), ElementsAre("warning 7"));
    EXPECT_THAT(trait("CUBLAS_COMPUTE_16F", Profile::inference), ElementsAre("note 7"));
    EXPECT_THAT(trait("CUBLAS_COMPUTE_32F"), IsEmpty());
    EXPECT_THAT(mp406("type 7:1 cublasMath_t alias=m args=[{text=CUBLAS_COMPUTE_16F}]"), IsEmpty());
}

TEST(CublasCompute16f, FastModesCountOnlyOnFloatMatrices) {
    EXPECT_THAT(mp406("call 7:1 cublasGemmEx args=[{constant=CUDA_R_32F} "
                      "{constant=CUBLAS_COMPUTE_32F_FAST_16BF}]"),
                ElementsAre("warning 7"));
    EXPECT_THAT(mp406("call 7:1 cublasGemmEx args=[{constant=CUDA_R_16F} "
                      "{constant=CUBLAS_COMPUTE_32F_FAST_16F}]"),
                IsEmpty());
    EXPECT_THAT(mp406("call 7:1 cublasGemmEx args=[{constant=CUDA_R_32F} "
                      "{constant=CUBLAS_COMPUTE_32F_FAST_TF32}]"),
                IsEmpty());
}

TEST(CublasCompute16f, CudnnComputeType) {
    EXPECT_THAT(mp406("call 7:1 cudnnSetConvolution2dDescriptor args=[{pointer} {constant=CUDNN_DATA_HALF}]"),
                ElementsAre("warning 7"));
    EXPECT_THAT(mp406("call 7:1 cudnnSetConvolution2dDescriptor args=[{pointer} "
                      "{constant=CUDNN_DATA_FLOAT}]"),
                IsEmpty());
    // The data type of a tensor, not of the arithmetic.
    EXPECT_THAT(mp406("call 7:1 cudnnSetTensor4dDescriptor args=[{pointer} {constant=CUDNN_DATA_HALF}]"),
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint::test
