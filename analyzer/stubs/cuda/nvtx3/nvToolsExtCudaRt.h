#pragma once
#include "../cuda_runtime.h"
#include "nvToolsExt.h"
extern "C" void nvtxNameCudaStreamA(cudaStream_t, const char*);
extern "C" void nvtxNameCudaEventA(cudaEvent_t, const char*);
#define nvtxNameCudaStream nvtxNameCudaStreamA
