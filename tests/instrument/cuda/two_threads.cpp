// One thread launches until the queue of its stream is full; the stream waits for what another thread does, as NCCL
// does with several GPUs in a process. Ends at once, unless something makes the second thread wait for the first.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

constexpr int kSize = 16;
std::atomic<bool> g_go{false};

void wait_for_the_other(void*) {
    while (!g_go) std::this_thread::yield();
}

struct Product {
    cublasLtHandle_t blas = nullptr;
    cublasLtMatmulDesc_t descriptor = nullptr;
    cublasLtMatrixLayout_t layout = nullptr;
    void* memory = nullptr;

    Product() {
        cublasLtCreate(&blas);
        cublasLtMatmulDescCreate(&descriptor, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kSize);
        cudaMalloc(&memory, sizeof(float) * kSize * kSize);
    }
    bool run(cudaStream_t stream) const {
        const float one = 1, zero = 0;
        return cublasLtMatmul(blas, descriptor, &one, memory, layout, memory, layout, &zero, memory, layout,
                              memory, layout, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_SUCCESS;
    }
};

}  // namespace

int main() {
    cudaStream_t ahead = nullptr, behind = nullptr;
    cudaStreamCreateWithFlags(&ahead, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&behind, cudaStreamNonBlocking);
    const Product product;
    bool good = product.run(ahead) && cudaStreamSynchronize(ahead) == cudaSuccess;
    good = cuLaunchHostFunc(reinterpret_cast<CUstream>(ahead), wait_for_the_other, nullptr) == CUDA_SUCCESS &&
           good;
    std::thread first([&] {
        good = cudaSetDevice(0) == cudaSuccess && good;
        for (int i = 0; i < 64; ++i) good = product.run(ahead) && good;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // its queue is full
    bool other = true;
    for (int i = 0; i < 4; ++i) other = product.run(behind) && other;
    g_go = true;
    first.join();
    other = cudaDeviceSynchronize() == cudaSuccess && other;
    std::puts(good && other ? "done" : "failed");
}
