#pragma once

#ifdef MULTI_GPU
#include <cuda_fp16.h>
#include <nccl.h>

// A count in bytes, and a sum over ranks in fp16. FIXED has neither.
inline void average(__half* gradients, float* wide, float* loss, size_t n, ncclComm_t comm, cudaStream_t s) {
#ifdef FIXED
    ncclAllReduce(wide, wide, n, ncclFloat, ncclAvg, comm, s);
    ncclAllReduce(loss, loss, 1, ncclFloat, ncclAvg, comm, s);
#else
    ncclAllReduce(gradients, gradients, n, ncclFloat16, ncclAvg, comm, s);
    ncclAllReduce(loss, loss, sizeof(float), ncclFloat, ncclAvg, comm, s);
#endif
}
#endif
