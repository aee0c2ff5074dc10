// The CUDA side of libtorch: streams, guards, accessors, atomics, warp helpers.
#pragma once

#include "mp_torch_dispatch.h"

#ifdef MP_TORCH_CUDA
#define C10_CUDA_CHECK(expression) do { if ((expression) != cudaSuccess) ::c10::mp_fail(""); } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define THCudaCheck(expression) C10_CUDA_CHECK(expression)
#define TORCH_CUDABLAS_CHECK(expression) do { if ((expression) != 0) ::c10::mp_fail(""); } while (0)

namespace c10::cuda {
class CUDAStream {
public:
    operator cudaStream_t() const;
    cudaStream_t stream() const;
    void synchronize() const;
    DeviceIndex device_index() const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getStreamFromPool(bool high = false, DeviceIndex = -1);
void setCurrentCUDAStream(CUDAStream);
void MaybeSetDevice(DeviceIndex);
DeviceIndex device_count();
DeviceIndex current_device();
void set_device(DeviceIndex);
class CUDAGuard {
public:
    explicit CUDAGuard(DeviceIndex);
    explicit CUDAGuard(Device);
    ~CUDAGuard();
    void set_index(DeviceIndex);
};
class OptionalCUDAGuard {
public:
    OptionalCUDAGuard();
    explicit OptionalCUDAGuard(optional<Device>);
    explicit OptionalCUDAGuard(DeviceIndex);
    ~OptionalCUDAGuard();
};
class CUDAStreamGuard {
public:
    explicit CUDAStreamGuard(CUDAStream);
    ~CUDAStreamGuard();
};
namespace CUDACachingAllocator {
void emptyCache();
void* raw_alloc(size_t);
void raw_delete(void*);
}
}  // namespace c10::cuda

namespace at::cuda {
using namespace c10::cuda;
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(int64_t);
int warp_size();
struct CUDAEvent { void record(); void synchronize(); };
template <typename T> __host__ __device__ T ATenCeilDiv(T a, T b);
dim3 getApplyBlock();
bool getApplyGrid(uint64_t, dim3&, int64_t);

namespace detail {
template <typename T, typename IndexType>
struct TensorInfo {
    T* data;
    IndexType sizes[25];
    IndexType strides[25];
    int dims;
    __host__ __device__ bool isContiguous() const;
};
template <typename T, typename IndexType, int Dims>
struct IndexToOffset {
    static __host__ __device__ IndexType get(IndexType linear, const TensorInfo<T, IndexType>& info);
};
template <typename T, typename IndexType> TensorInfo<T, IndexType> getTensorInfo(const at::Tensor&);
bool canUse32BitIndexMath(const at::Tensor&, int64_t max = 0);
}  // namespace detail
}  // namespace at::cuda

template <typename T> __device__ T WARP_SHFL(T v, int lane, int width = 32, unsigned mask = 0xffffffff);
template <typename T> __device__ T WARP_SHFL_XOR(T v, int lane, int width = 32, unsigned mask = 0xffffffff);
template <typename T> __device__ T WARP_SHFL_UP(T v, unsigned delta, int width = 32, unsigned mask = 0xffffffff);
template <typename T> __device__ T WARP_SHFL_DOWN(T v, unsigned delta, int width = 32, unsigned mask = 0xffffffff);
__device__ unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff);
__device__ void WARP_SYNC(unsigned mask = 0xffffffff);
#endif
