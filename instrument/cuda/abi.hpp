#pragma once

#include <cstddef>
#include <cstdint>

// The parts of NVIDIA's binary interfaces that this room meets, declared here so that it builds without a CUDA toolkit.
// tests/instrument/cuda/abi_test.cpp compares them with the headers of a toolkit where there is one.

struct CUstream_st;

namespace mp::raw::abi {

using Stream = CUstream_st*;

// cuda.h: attributes of a pointer and of a device. Memory of cuMemAlloc alone can be shared the old way.
inline constexpr int kBufferId = 7, kIpcCapable = 10, kRangeStart = 11, kRangeSize = 12;
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

// library_types.h: the cudaDataType that cuBLAS takes.
inline constexpr int kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29;

// cublas_api.h
inline constexpr int kNotInitialized = 1;  // CUBLAS_STATUS_NOT_INITIALIZED
inline constexpr int kPointerModeHost = 0;
inline constexpr int kTransposeNone = 0;
inline constexpr int kCompute16F = 64, kCompute16FPedantic = 65, kCompute32F = 68, kCompute32FPedantic = 69,
                     kCompute32FFast16F = 74, kCompute32FFast16BF = 75, kCompute32FFastTF32 = 77;
inline constexpr int kMathTF32 = 3, kMathMask = 15;

// cublasLt.h: attributes of a matmul, a layout and an algorithm, and their values.
inline constexpr int kLtComputeType = 0, kLtScaleType = 1, kLtPointerMode = 2, kLtTransA = 3, kLtTransB = 4,
                     kLtEpilogue = 7, kLtBiasPointer = 8, kLtScaleOfA = 17, kLtScaleOfD = 20,
                     kLtBiasType = 26;
inline constexpr int kLtLayoutType = 0, kLtLayoutOrder = 1, kLtLayoutRows = 2, kLtLayoutColumns = 3,
                     kLtLayoutLeading = 4, kLtLayoutBatch = 5, kLtLayoutStride = 6;
inline constexpr int kLtOrderColumn = 0, kLtOrderRow = 1;
inline constexpr int kLtSplitK = 2, kLtReductionScheme = 3;
inline constexpr std::uint32_t kLtReduceInPlace = 1, kLtReduceInOutputType = 4;
inline constexpr std::uint32_t kLtEpilogueNone = 1, kLtEpilogueBias = 4;

// nccl.h
inline constexpr int kNcclInternalError = 3, kNcclInProgress = 7;
inline constexpr int kNcclFloat16 = 6, kNcclFloat32 = 7, kNcclFloat64 = 8, kNcclBfloat16 = 9, kNcclE4M3 = 10,
                     kNcclE5M2 = 11;
inline constexpr int kNcclAvg = 4;

// cupti.h: a callback of the driver domain.
struct CallbackData {
    int site;  // 0 enter, 1 exit
    const char* function;
    const void* parameters;
    void* result;
    const char* symbol;  // the kernel's mangled name at launches
    void* context;
    std::uint32_t context_uid;
    std::uint64_t* correlation_data;
    std::uint32_t correlation_id;
};
struct CuptiSubscriber {
    std::size_t size;
    const char* name;
    char* holder;
    std::size_t holder_size;
};
inline constexpr int kCuptiDriverDomain = 1;
inline constexpr int kCuptiManySubscribers = 39;

// nvToolsExt.h
struct NvtxMessage {
    const void* pointer;  // const char*, const wchar_t*, or a registered string
};
inline constexpr int kNvtxAscii = 1, kNvtxWide = 2, kNvtxRegistered = 3;
struct NvtxAttributes {
    std::uint16_t version;
    std::uint16_t size;
    std::uint32_t category;
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type;
    std::int32_t reserved;
    std::uint64_t payload;
    std::int32_t message_type;
    NvtxMessage message;
};
inline constexpr int kNvtxNotTracked = -2;  // NVTX_NO_PUSH_POP_TRACKING

// nvtxTypes.h
using NvtxFunction = void (*)();
inline constexpr std::uint32_t kNvtxCallbacks = 1;  // the id of this export table
struct NvtxCallbackTable {
    std::size_t size;
    int (*functions_of)(int module, NvtxFunction*** table, unsigned* size);
};
using NvtxExports = const void* (*)(std::uint32_t table);
inline constexpr int kNvtxCore = 1, kNvtxCore2 = 5;  // modules

}  // namespace mp::raw::abi
