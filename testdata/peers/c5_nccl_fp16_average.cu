#include <cuda_fp16.h>
#include <nccl.h>

ncclResult_t average_bad(const __half* g, __half* out, size_t n, ncclComm_t comm, cudaStream_t s) {
    return ncclAllReduce(g, out, n, ncclFloat16, ncclAvg, comm, s);  // defect C5: MP409
}

ncclResult_t average_good(const float* g, float* out, size_t n, ncclComm_t comm, cudaStream_t s) {
    return ncclAllReduce(g, out, n, ncclFloat32, ncclAvg, comm, s);
}
