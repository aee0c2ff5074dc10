// Streams, guards and errors of the CUDA side.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "../mp_tensor.h"

namespace c10 {
namespace cuda {
class CUDAStream {
public:
    operator cudaStream_t() const;
    cudaStream_t stream() const;
    void synchronize() const;
    DeviceIndex device_index() const;
    Device device() const;
    operator Stream() const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1);
CUDAStream getStreamFromExternal(cudaStream_t, DeviceIndex);
void setCurrentCUDAStream(CUDAStream);
struct CUDAGuard {
    explicit CUDAGuard(DeviceIndex);
    explicit CUDAGuard(Device);
    ~CUDAGuard();
    void set_device(Device);
    void set_index(DeviceIndex);
};
struct OptionalCUDAGuard {
    explicit OptionalCUDAGuard();
    explicit OptionalCUDAGuard(std::optional<Device>);
    explicit OptionalCUDAGuard(DeviceIndex);
    ~OptionalCUDAGuard();
};
struct CUDAStreamGuard {
    explicit CUDAStreamGuard(CUDAStream);
    ~CUDAStreamGuard();
};
DeviceIndex device_count() noexcept;
DeviceIndex current_device();
void set_device(DeviceIndex);
void device_synchronize();
cudaError_t MaybeSetDevice(DeviceIndex);
namespace CUDACachingAllocator {
void emptyCache();
void* raw_alloc(size_t);
void raw_delete(void*);
}  // namespace CUDACachingAllocator
}  // namespace cuda
}  // namespace c10
namespace at {
namespace cuda {
using namespace c10::cuda;
cublasHandle_t getCurrentCUDABlasHandle();
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(c10::DeviceIndex);
int warp_size();
bool is_available();
struct CUDAEvent {
    void record();
    void record(const CUDAStream&);
    void block(const CUDAStream&);
    void synchronize() const;
};
template <class T> T ATenCeilDiv(T a, T b);
namespace detail {
template <class T, class I> struct TensorInfo {
    T* data;
    I sizes[25];
    I strides[25];
    int dims;
};
template <class T, class I> TensorInfo<T, I> getTensorInfo(const at::Tensor&);
bool canUse32BitIndexMath(const at::Tensor&, int64_t = 0);
template <class T, class I, int Dims> struct IndexToOffset {
    C10_HOST_DEVICE static I get(I, const TensorInfo<T, I>&);
};
bool maybeOverlappingIndices(const at::Tensor&);
}  // namespace detail
}  // namespace cuda
template <class T> C10_HOST_DEVICE T ceil_div(T, T);
}  // namespace at

#define C10_CUDA_CHECK(e) do { const cudaError_t mp_error = (e); if (mp_error != cudaSuccess) throw ::c10::Error(""); } while (0)
#define AT_CUDA_CHECK(e) C10_CUDA_CHECK(e)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define THCudaCheck(e) C10_CUDA_CHECK(e)
#define TORCH_CUDABLAS_CHECK(e) do { if ((e) != CUBLAS_STATUS_SUCCESS) throw ::c10::Error(""); } while (0)
#define CUDA_KERNEL_LOOP(i, n) \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)blockDim.x * gridDim.x)
namespace at { namespace cuda { namespace blas {} } }

#if defined(__CUDA__)
template <class T> __device__ T WARP_SHFL_XOR(T, int, int = 32, unsigned int = 0xffffffffu);
template <class T> __device__ T WARP_SHFL_DOWN(T, unsigned int, int = 32, unsigned int = 0xffffffffu);
template <class T> __device__ T WARP_SHFL_UP(T, unsigned int, int = 32, unsigned int = 0xffffffffu);
template <class T> __device__ T WARP_SHFL(T, int, int = 32, unsigned int = 0xffffffffu);
__device__ void WARP_SYNC(unsigned int = 0xffffffffu);
__device__ unsigned int WARP_BALLOT(int, unsigned int = 0xffffffffu);
#endif
