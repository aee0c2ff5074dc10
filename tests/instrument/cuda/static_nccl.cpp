// A program whose calls of NCCL cannot be replaced, as with an NCCL that is linked statically: it calls the strong
// names.
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <string>

int main() {
    constexpr std::size_t kElements = 512;
    void* data = nullptr;
    ncclComm_t comm = nullptr;
    bool good = cudaMalloc(&data, 2 * kElements) == cudaSuccess &&
                cudaMemset(data, 0, 2 * kElements) == cudaSuccess &&
                pncclCommInitAll(&comm, 1, nullptr) == ncclSuccess;
    for (int step = 0; step < 3 && good; ++step) {
        nvtxRangePushA(("Train step " + std::to_string(step)).c_str());
        good = pncclAllReduce(data, data, kElements, ncclBfloat16, ncclAvg, comm, nullptr) == ncclSuccess &&
               pncclAllGather(data, data, kElements, ncclBfloat16, comm, nullptr) == ncclSuccess;
        nvtxRangePop();
    }
    good = good && cudaDeviceSynchronize() == cudaSuccess && pncclCommDestroy(comm) == ncclSuccess;
    std::puts(good ? "done" : "failed");
}
