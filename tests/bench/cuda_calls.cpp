// What a call of NVIDIA libraries takes the calling thread, in nanoseconds: cuda_calls N. Linked against the fakes,
// whose work runs on another thread; an empty call of a library is measured beside.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

// A kernel that is registered as nvcc registers it, and what it does under the fakes.
extern "C" void host_nothing_kernel(int, void**) {}
extern "C" const unsigned* host_nothing_kernel_sizes() {
    static const unsigned sizes[] = {0};
    return sizes;
}
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                                       dim3*, int*);

namespace {

void require(int status, const char* what) {
    if (status == 0) return;
    std::fprintf(stderr, "cuda_calls: %s gave %d\n", what, status);
    std::exit(1);
}

// The best of ten rounds. Between them the device does what it was given.
template <class Call>
void measure(const char* name, int n, Call&& call) {
    double best = 1e30;
    for (int round = 0; round < 10; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < n; ++i) call();
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        best = took.count() / n < best ? took.count() / n : best;
    }
    std::printf("%s\t%.1f\n", name, best);
}

}  // namespace

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 1000;
    constexpr int kSize = 16;
    void* memory = nullptr;
    require(cudaMalloc(&memory, sizeof(float) * kSize * kSize), "cudaMalloc");
    cublasLtHandle_t blas = nullptr;
    require(cublasLtCreate(&blas), "cublasLtCreate");
    cublasLtMatmulDesc_t product = nullptr;
    require(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    cublasLtMatrixLayout_t layout = nullptr;
    require(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kSize),
            "cublasLtMatrixLayoutCreate");
    ncclUniqueId id;
    require(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclComm_t ranks = nullptr;
    require(ncclCommInitRank(&ranks, 1, id, 0), "ncclCommInitRank");
    const float one = 1, zero = 0;

    measure("empty", n, [] { cublasLtGetVersion(); });
    measure("range", n, [] {
        nvtxRangePushA("Layer 1");
        nvtxRangePop();
    });
    static char stub;
    __cudaRegisterFunction(nullptr, &stub, nullptr, "_Z14nothing_kernelv", 0, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    measure("launch", n,
            [] { require(cudaLaunchKernel(&stub, dim3(1), dim3(1), nullptr, 0, nullptr), "launch"); });
    measure("matmul", n, [&] {
        require(cublasLtMatmul(blas, product, &one, memory, layout, memory, layout, &zero, memory, layout,
                               memory, layout, nullptr, nullptr, 0, nullptr),
                "cublasLtMatmul");
    });
    measure("all_reduce", n, [&] {
        require(ncclAllReduce(memory, memory, kSize, ncclFloat, ncclSum, ranks, nullptr), "ncclAllReduce");
    });
}
