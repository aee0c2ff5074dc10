#pragma once

#include <cstddef>

#include "cuda.hpp"

namespace zero1 {

// Matrix products by cuBLASLt. All matrices are row-major.
class Matmul {
public:
    Matmul(cudaDataType_t type, bool half_accumulator, bool split_k, bool tf32);
    ~Matmul();
    Matmul(const Matmul&) = delete;
    Matmul& operator=(const Matmul&) = delete;

    // y[rows, out] = factor * x[rows, in] * weight[out, in]^T + bias
    void forward(void* y, const void* x, const void* weight, const void* bias, int rows, int in, int out,
                 cudaStream_t, float factor = 1) const;
    // dx[rows, in] = dy[rows, out] * weight[out, in]
    void backward(void* dx, const void* dy, const void* weight, int rows, int in, int out, cudaStream_t) const;
    // dweight[out, in] += dy[rows, out]^T * x[rows, in]
    void weight_backward(void* dweight, const void* dy, const void* x, int rows, int in, int out, cudaStream_t) const;

private:
    struct Product;
    void run(const Product&, cudaStream_t) const;

    cublasLtHandle_t handle_ = nullptr;
    cudaDataType_t type_;
    cublasComputeType_t compute_;
    cudaDataType_t scale_;
    bool split_k_;
    void* workspace_ = nullptr;
    static constexpr std::size_t kWorkspace = 4 << 20;
};

}  // namespace zero1
