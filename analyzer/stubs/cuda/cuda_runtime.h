// The C++ face of the runtime API: templates over the C functions, then what device code needs.
#pragma once

#ifdef __CUDA__
#include "mp_cuda_stub.h"
#endif
#include "cuda_runtime_api.h"
#include "mp_cuda_device.h"

template <class T> cudaError_t cudaMalloc(T**, size_t);
template <class T> cudaError_t cudaMallocHost(T**, size_t, unsigned int = 0);
template <class T> cudaError_t cudaMallocAsync(T**, size_t, cudaStream_t);
template <class T> cudaError_t cudaMallocManaged(T**, size_t, unsigned int = cudaMemAttachGlobal);
template <class T> cudaError_t cudaHostAlloc(T**, size_t, unsigned int);
template <class T> cudaError_t cudaHostGetDevicePointer(T**, void*, unsigned int);
template <class T> cudaError_t cudaFuncSetAttribute(T*, cudaFuncAttribute, int);
template <class T> cudaError_t cudaFuncSetCacheConfig(T*, cudaFuncCache);
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, T*);
template <class T> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, T, int, size_t);
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int*, T, int, size_t, unsigned int);
template <class T> cudaError_t cudaOccupancyMaxPotentialBlockSize(int*, int*, T, size_t = 0, int = 0);
template <class T> cudaError_t cudaLaunchKernel(T*, dim3, dim3, void**, size_t = 0, cudaStream_t = 0);
template <class T>
cudaError_t cudaLaunchCooperativeKernel(T*, dim3, dim3, void**, size_t = 0, cudaStream_t = 0);
template <class... Expected, class... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t*, void (*)(Expected...), Actual&&...);
template <class T>
cudaError_t cudaMemcpyToSymbol(const T&, const void*, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice);
template <class T>
cudaError_t cudaMemcpyFromSymbol(void*, const T&, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost);
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T&, const void*, size_t, size_t, cudaMemcpyKind, cudaStream_t = 0);
template <class T> cudaError_t cudaGetSymbolAddress(void**, const T&);
extern "C" cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventCreate(cudaEvent_t*, unsigned int);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, cudaGraphNode_t*, char*, size_t);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t, cudaGraphNode_t*, cudaGraphExecUpdateResult*);
template <class T> cudaChannelFormatDesc cudaCreateChannelDesc();
