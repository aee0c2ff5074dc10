// The same conversions on a GPU: every 16-bit pattern and its neighbourhood against CUDA's own
// intrinsics. Without a device it says so and exits with 77, which ctest counts as skipped.
#include <cstdio>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/numerics/convert.hpp"

using mp::DType;

__device__ bool agrees(float x) {
    const bool fp16 = mp::encode<DType::fp16>(x) == __half_as_ushort(__float2half_rn(x));
    const bool bf16 = mp::encode<DType::bf16>(x) == __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return fp16 && bf16;
}

// One thread per fp32 pattern whose upper half is the block's 16-bit pattern; NaNs differ in payload.
__global__ void compare(unsigned long long* wrong) {
    const unsigned upper = blockIdx.x << 16;
    for (unsigned lower = threadIdx.x; lower < 0x10000; lower += blockDim.x) {
        const float x = __uint_as_float(upper | lower);
        if (x == x && !agrees(x)) atomicAdd(wrong, 1ULL);
    }
    if (threadIdx.x != 0) return;
    const auto pattern = static_cast<unsigned short>(blockIdx.x);
    const float half = __half2float(__ushort_as_half(pattern));
    const float mine = mp::decode_float<DType::fp16>(pattern);
    if (half == half ? __float_as_uint(half) != __float_as_uint(mine) : mine == mine) atomicAdd(wrong, 1ULL);
}

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("skipped: no CUDA device");
        return 77;
    }
    unsigned long long* wrong = nullptr;
    if (cudaMallocManaged(&wrong, sizeof *wrong) != cudaSuccess) return 1;
    *wrong = 0;
    compare<<<0x10000, 256>>>(wrong);
    if (cudaDeviceSynchronize() != cudaSuccess) {
        std::printf("the kernel failed: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    std::printf("%llu of 2^32 fp32 values differ from the device's own conversion\n", *wrong);
    const int result = *wrong == 0 ? 0 : 1;
    cudaFree(wrong);
    return result;
}
