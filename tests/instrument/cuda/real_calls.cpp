// Calls of NVIDIA's own libraries on a machine without a GPU: each fails there, after mp-trace has read what was asked.
//
//   real_calls      prints the status of each call
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>

namespace {

struct Shape {
    std::uint64_t m, n, k;
};

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::uint64_t rows, std::uint64_t columns) {
    cublasLtMatrixLayout_t made = nullptr;
    cublasLtMatrixLayoutCreate(&made, type, rows, columns, static_cast<std::int64_t>(rows));
    return made;
}

template <class T>
void set(cublasLtMatmulDesc_t call, cublasLtMatmulDescAttributes_t which, const T& value) {
    cublasLtMatmulDescSetAttribute(call, which, &value, sizeof value);
}

// D = A^T B + bias, with what a test asks of it.
void multiply(const char* name, cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t in,
              cudaDataType_t out, Shape s, std::int32_t parts) {
    alignas(16) static char memory[64];
    cublasLtMatmulDesc_t call = nullptr;
    cublasLtMatmulDescCreate(&call, compute, scale);
    set(call, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(call, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(call, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(memory));
    cublasLtMatmulAlgo_t algorithm{};
    const std::uint32_t scheme =
        parts > 1 ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts);
    cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                         sizeof scheme);
    const float wide[] = {1, 0};
    const __half narrow[] = {__float2half(1), __float2half(0)};
    const bool half = scale == CUDA_R_16F;
    const void* const one = half ? static_cast<const void*>(narrow) : wide;
    const void* const zero = half ? static_cast<const void*>(narrow + 1) : wide + 1;
    cublasLtMatrixLayout_t const a = layout(in, s.k, s.m), b = layout(in, s.k, s.n),
                                 d = layout(out, s.m, s.n);
    nvtxRangePushA(name);
    const int status = cublasLtMatmul(nullptr, call, one, memory, a, memory, b, zero, memory, d, memory, d,
                                      &algorithm, nullptr, 0, nullptr);
    nvtxRangePop();
    std::printf("%s %d\n", name, status);
    for (cublasLtMatrixLayout_t const l : {a, b, d}) cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(call);
}

// A name that is registered, in a domain of its own.
void reduce() {
    nvtxDomainHandle_t const domain = nvtxDomainCreateA("training");
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    range.message.registered = nvtxDomainRegisterStringA(domain, "Layer 4");
    nvtxDomainRangePushEx(domain, &range);
    float data[16] = {};
    std::printf("all_reduce %d\n",
                int{ncclAllReduce(data, data, 16, ncclBfloat16, ncclAvg, nullptr, nullptr)});
    multiply("after", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, {8, 8, 8}, 1);
    nvtxDomainRangePop(domain);
}

}  // namespace

int main() {
    nvtxRangePushA("Train step 0");
    multiply("Layer 0", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, {16, 32, 64}, 1);
    multiply("Layer 1", CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, {16, 32, 128}, 1);
    multiply("Layer 2", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, {16, 32, 256}, 4);
    multiply("Layer 3", CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, {16, 32, 512}, 1);
    reduce();
    const float one = 1, zero = 0;
    nvtxRangePushA("Layer 5");
    std::printf("gemm %d\n", int{cublasGemmEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, &one,
                                              CUDA_R_16BF, 8, &one, CUDA_R_16BF, 8, &zero, nullptr,
                                              CUDA_R_16BF, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)});
    nvtxRangePop();
    nvtxRangePop();
}
