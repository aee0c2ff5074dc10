#pragma once

#include <cstddef>
#include <cstdint>

// The few functions of libcuda.so.1 that the launcher calls, found with dlopen. Their signatures are those of cuda.h,
// repeated here so that adapters need no CUDA toolkit.

struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;

namespace mp::cuda {

using Stream = CUstream_st*;  // a CUstream, which is what a cudaStream_t is too
using DeviceAddress = unsigned long long;

struct Driver {
    int (*init)(unsigned flags) = nullptr;
    int (*version)(int*) = nullptr;
    int (*device)(int*) = nullptr;  // of the current context
    int (*attribute)(int*, int attribute, int device) = nullptr;
    int (*load)(CUmod_st**, const void* image) = nullptr;
    int (*unload)(CUmod_st*) = nullptr;
    int (*function)(CUfunc_st**, CUmod_st*, const char* name) = nullptr;
    int (*blocks_per_processor)(int*, CUfunc_st*, int threads, std::size_t shared_bytes) = nullptr;
    int (*allocate)(DeviceAddress*, std::size_t bytes) = nullptr;
    int (*free)(DeviceAddress) = nullptr;
    int (*clear)(DeviceAddress, unsigned char value, std::size_t bytes, Stream) = nullptr;
    int (*pin)(void** at, std::size_t bytes,
               unsigned flags) = nullptr;  // host memory that devices can address
    int (*read)(void* to, DeviceAddress from, std::size_t bytes, Stream) = nullptr;
    int (*capturing)(Stream, int* status) = nullptr;
    int (*launch)(CUfunc_st*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                  void** arguments, void** extra) = nullptr;

    bool complete() const { return launch != nullptr; }
};

// Null functions where there is no driver. Loaded once per process.
const Driver& driver() noexcept;

}  // namespace mp::cuda
