#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace zero1 {

[[noreturn]] inline void fail(const char* call, const char* why) {
    std::fprintf(stderr, "zero1_gpt: %s: %s\n", call, why);
    std::exit(1);
}
inline void check(cudaError_t code, const char* call) {
    if (code != cudaSuccess) fail(call, cudaGetErrorString(code));
}
inline void check(cublasStatus_t code, const char* call) {
    if (code != CUBLAS_STATUS_SUCCESS) fail(call, cublasLtGetStatusString(code));
}
inline void check(ncclResult_t code, const char* call) {
    if (code != ncclSuccess) fail(call, ncclGetErrorString(code));
}
#define ZERO1_CHECK(call) ::zero1::check(call, #call)

// A range of NVTX.
class Range {
public:
    explicit Range(const char* name) { nvtxRangePushA(name); }
    Range(const char* name, int number) {
        char text[64];
        std::snprintf(text, sizeof text, "%s %d", name, number);
        nvtxRangePushA(text);
    }
    ~Range() { nvtxRangePop(); }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

}  // namespace zero1
