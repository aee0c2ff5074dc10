// Products of cuBLAS whose inputs are rounded first, or not, by the handle's math mode and by the compute type; and
// products of a matrix and a vector. Each is in a layer of its own. Prints a sum of each result.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/instrument/cuda/device_tensor.hpp"

namespace {

constexpr int kRows = 48, kColumns = 40, kDepth = 56, kBatches = 2;

void check(cublasStatus_t status, const char* what) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "%s: %d\n", what, int{status});
    std::exit(1);
}

template <class T>
struct Tensor : DeviceTensor<T> {
    Tensor(std::size_t count, int seed) : DeviceTensor<T>(values(count, seed)) {}

private:
    static std::vector<T> values(std::size_t count, int seed) {
        std::vector<T> out(count);
        for (std::size_t i = 0; i < count; ++i)
            out[i] = T(0.37f * static_cast<float>((i * 7 + static_cast<std::size_t>(seed) * 5) % 23) - 4.0f);
        return out;
    }
};

class Layers {
public:
    Layers() { cublasCreate(&handle_); }

    template <class Multiply>
    void run(const std::string& name, int math, const Multiply& multiply) const {
        check(cublasSetMathMode(handle_, static_cast<cublasMath_t>(math)), "cublasSetMathMode");
        nvtxRangePushA(name.c_str());
        multiply(name.c_str());
        nvtxRangePop();
    }
    // With a compute type, or with the one that Sgemm has.
    void multiply(const char* name, int compute) const {
        const float one = 1, zero = 0;
        if (compute == 0)
            check(cublasSgemm_v2(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kDepth, &one, a_, kRows,
                                 b_, kDepth, &zero, d_, kRows),
                  name);
        else
            check(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kDepth, &one, a_,
                               CUDA_R_32F, kRows, b_, CUDA_R_32F, kDepth, &zero, d_, CUDA_R_32F, kRows,
                               static_cast<cublasComputeType_t>(compute), CUBLAS_GEMM_DEFAULT),
                  name);
        d_.print(name);
    }
    void multiply_lt(const char* name, int compute) const {
        const float one = 1, zero = 0;
        cublasLtHandle_t handle = nullptr;
        cublasLtMatmulDesc_t call = nullptr;
        cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
        check(cublasLtCreate(&handle), "cublasLtCreate");
        cublasLtMatmulDescCreate(&call, static_cast<cublasComputeType_t>(compute), CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, kRows, kDepth, kRows);
        cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, kDepth, kColumns, kDepth);
        cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, kRows, kColumns, kRows);
        check(cublasLtMatmul(handle, call, &one, a_, a, b_, b, &zero, d_, d, d_, d, nullptr, nullptr, 0,
                             nullptr),
              name);
        d_.print(name);
    }
    void multiply_vector(const char* name, cublasOperation_t t) const {
        const float one = 1, half = 0.5f;
        Tensor<float> y(kRows + kDepth, 3);
        check(cublasSgemv_v2(handle_, t, kRows, kDepth, &one, a_, kRows, b_, 1, &half, y, 1), name);
        y.print(name);
    }
    void multiply_vectors(const char* name, cublasOperation_t t) const {
        const float one = 1, zero = 0;
        const Tensor<__half> a(kBatches * kRows * kDepth, 1), x(kBatches * (kRows + kDepth), 2),
            y(kBatches * (kRows + kDepth), 3);
        check(cublasHSHgemvStridedBatched(handle_, t, kRows, kDepth, &one, a, kRows, kRows * kDepth, x, 1,
                                          kRows + kDepth, &zero, y, 1, kRows + kDepth, kBatches),
              name);
        y.print(name);
    }

private:
    cublasHandle_t handle_ = nullptr;
    Tensor<float> a_{kRows * kDepth, 1}, b_{kDepth * kColumns, 2}, d_{kRows * kColumns, 3};
};

}  // namespace

int main() {
    constexpr int kTf32AndWide =
        CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    constexpr int kEmulated = 78, kEmulatedMath = 4, kEmulatedDoubleMath = 8;  // of CUDA 13
    const Layers layers;
    const auto with = [&layers](int compute) {
        return [&layers, compute](const char* name) { layers.multiply(name, compute); };
    };
    layers.run("default", CUBLAS_DEFAULT_MATH, with(0));
    layers.run("tf32 mode", kTf32AndWide, with(0));
    layers.run("tf32 mode, GemmEx", CUBLAS_TF32_TENSOR_OP_MATH, with(CUBLAS_COMPUTE_32F));
    layers.run("tf32 mode, pedantic", CUBLAS_TF32_TENSOR_OP_MATH, with(CUBLAS_COMPUTE_32F_PEDANTIC));
    layers.run("tensor mode", CUBLAS_TENSOR_OP_MATH, with(0));
    layers.run("pedantic mode", CUBLAS_PEDANTIC_MATH, with(0));
    layers.run("emulated mode", kEmulatedMath, with(0));
    layers.run("emulated doubles", kEmulatedDoubleMath, with(0));
    layers.run("emulated", CUBLAS_DEFAULT_MATH, with(kEmulated));
    layers.run("emulated, Lt", CUBLAS_DEFAULT_MATH, [&](auto name) { layers.multiply_lt(name, kEmulated); });
    for (const cublasOperation_t t : {CUBLAS_OP_N, CUBLAS_OP_T}) {
        const std::string of = t == CUBLAS_OP_N ? "vector" : "vector, transposed";
        layers.run(of, CUBLAS_DEFAULT_MATH, [&](auto name) { layers.multiply_vector(name, t); });
        layers.run(of + " in fp16", CUBLAS_DEFAULT_MATH,
                   [&](auto name) { layers.multiply_vectors(name, t); });
    }
}
