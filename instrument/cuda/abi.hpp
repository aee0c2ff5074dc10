#pragma once

#include <cstddef>
#include <cstdint>

// The parts of NVIDIA's binary interfaces that this room meets, declared here so that it builds without a CUDA toolkit.
// tests/instrument/cuda/abi_test.cpp compares them with the headers of a toolkit where there is one.

struct CUstream_st;

namespace mp::raw::abi {

using Stream = CUstream_st*;

// cuda.h: the streams that belong to whatever context is current: none, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD.
inline bool is_default(Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

// cuda.h: attributes of a pointer and of a device. Memory of cuMemAlloc alone can be shared the old way.
inline constexpr int kBufferId = 7, kDeviceOrdinal = 9, kIpcCapable = 10, kRangeStart = 11, kRangeSize = 12,
                     kPool = 17;
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

// library_types.h: the cudaDataType that cuBLAS takes.
inline constexpr int kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29;

// cublas_api.h
inline constexpr int kNotInitialized = 1;  // CUBLAS_STATUS_NOT_INITIALIZED
inline constexpr int kPointerModeHost = 0;
inline constexpr int kTransposeNone = 0, kTransposeOther = 1;  // CUBLAS_OP_N, CUBLAS_OP_T
inline constexpr int kCompute16F = 64, kCompute16FPedantic = 65, kCompute32F = 68, kCompute32FPedantic = 69,
                     kCompute64F = 70, kCompute64FPedantic = 71, kCompute32I = 72, kCompute32IPedantic = 73,
                     kCompute32FFast16F = 74, kCompute32FFast16BF = 75, kCompute32FFastTF32 = 77,
                     kCompute32FEmulated = 78, kCompute64FEmulated = 79;
inline constexpr int kMathTensorOp = 1, kMathTF32 = 3, kMathMask = 15, kMathReducesWide = 16;

// cublasLt.h: attributes of a matmul, a layout and an algorithm, and their values.
inline constexpr int kLtComputeType = 0, kLtPointerMode = 2, kLtTransA = 3, kLtTransB = 4, kLtEpilogue = 7,
                     kLtBiasPointer = 8, kLtScaleOfA = 17, kLtScaleOfD = 20, kLtBiasType = 26;
inline constexpr int kLtLayoutType = 0, kLtLayoutOrder = 1, kLtLayoutRows = 2, kLtLayoutColumns = 3,
                     kLtLayoutLeading = 4, kLtLayoutBatch = 5, kLtLayoutStride = 6;
inline constexpr int kLtOrderColumn = 0, kLtOrderRow = 1;
inline constexpr int kLtSplitK = 2, kLtReductionScheme = 3;
inline constexpr std::uint32_t kLtReduceInPlace = 1, kLtReduceInComputeType = 2, kLtReduceInOutputType = 4;
// Bits of an epilogue; those of a derivative come with the bit of the gradient of the bias, or of A's or B's.
inline constexpr std::uint32_t kLtEpilogueNone = 1, kLtEpilogueRelu = 2, kLtEpilogueBias = 4,
                               kLtEpilogueReluBackward = 8, kLtEpilogueBiasGradient = 16,
                               kLtEpilogueGelu = 32, kLtEpilogueGeluBackward = 64,
                               kLtEpilogueBiasGradientA = 256, kLtEpilogueBiasGradientB = 512;

// nccl.h
inline constexpr int kNcclScalarOfHost = 1;  // ncclScalarHostImmediate
inline constexpr int kNcclInternalError = 3, kNcclInProgress = 7;
inline constexpr int kNcclFloat16 = 6, kNcclFloat32 = 7, kNcclFloat64 = 8, kNcclBfloat16 = 9, kNcclE4M3 = 10,
                     kNcclE5M2 = 11;

struct NcclUniqueId {
    char internal[128];
};

// The profiler interface of NCCL (plugins/profiler of its sources), versions 4 and 5: the start of a collective. The
// type of an event has 1 byte in version 4 and 8 in version 5; those of version 5 alone are above 255.
inline constexpr int kNcclCollectiveEvent = 2;  // ncclProfileColl
struct NcclCollective {
    std::uint64_t number;
    const char* function;  // "AllReduce"
    const void* send;
    const void* receive;
    std::size_t count;
    int root;
    const char* dtype;  // "ncclBfloat16"
    std::uint8_t channels;
    std::uint8_t warps;
    const char* algorithm;  // "RING"
    const char* protocol;   // "SIMPLE"
};
struct NcclEvent {
    std::uint8_t type;
    void* parent;
    int rank;
    NcclCollective collective;
};

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

// cupti_activity.h: the beginnings of the records that are read.
inline constexpr int kActivityDriver = 4, kActivityRuntime = 5, kActivityKernel = 10, kActivityExternal = 39;
inline constexpr int kExternalCustom = 3;  // the kind of correlation that is ours
inline constexpr std::uint32_t kFlushForced = 1;
struct KernelActivity {
    int kind;
    std::uint8_t not_read[12];
    std::uint64_t start, end, completed;  // ns
    std::uint32_t device, context, stream;
    std::int32_t grid[3], block[3];
    std::int32_t static_shared, dynamic_shared;
    std::uint32_t local_per_thread, local_total;
    std::uint32_t correlation;
};
struct [[gnu::packed, gnu::aligned(8)]] ExternalActivity {
    int kind;
    int external_kind;
    std::uint64_t external;
    std::uint32_t correlation;
    std::uint32_t reserved;
};

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
    std::int32_t payloads;  // how many of the extension for payloads follow
    std::uint64_t payload;
    std::int32_t message_type;
    NvtxMessage message;
};
inline constexpr int kNvtxNotTracked = -2;  // NVTX_NO_PUSH_POP_TRACKING
inline constexpr std::int32_t kNvtxUint64 = 1, kNvtxInt64 = 2, kNvtxUint32 = 4, kNvtxInt32 = 5,
                              kNvtxPayloads = static_cast<std::int32_t>(0xDFBD0009);

// nvtxTypes.h
using NvtxFunction = void (*)();
inline constexpr std::uint32_t kNvtxCallbacks = 1;  // the id of this export table
struct NvtxCallbackTable {
    std::size_t size;
    int (*functions_of)(int module, NvtxFunction*** table, unsigned* size);
};
using NvtxExports = const void* (*)(std::uint32_t table);
inline constexpr int kNvtxCore = 1, kNvtxCore2 = 5;  // modules

// nvtxExtTypes.h: an extension of NVTX in one module of the program, whose slots take our functions.
struct NvtxSegment {
    std::size_t id;
    std::size_t slots;
    std::intptr_t* functions;
};
struct NvtxExtension {
    std::uint16_t version;
    std::uint16_t size;
    std::uint16_t module;
    std::uint16_t compatible;
    std::size_t segments_count;
    NvtxSegment* segments;
    void* exports;
    const void* info;
};
inline constexpr std::uint16_t kNvtxMemory = 1, kNvtxPayload = 2;  // modules

// nvToolsExtMem.h: memory with names.
inline constexpr std::uint32_t kMemoryVirtual = 1;  // the type of a region: an address and a size
struct NvtxVirtualRange {
    std::size_t bytes;
    const void* at;
};
struct NvtxHeap {
    std::uint16_t compatible;
    std::uint16_t size;
    std::uint32_t reserved;
    std::uint32_t usage;
    std::uint32_t type;
    std::size_t range_size;
    const void* range;
    std::uint32_t category;
    std::uint32_t message_type;
    NvtxMessage message;
};
struct NvtxRegions {
    std::uint16_t compatible;
    std::uint16_t size;
    std::uint32_t type;
    const void* heap;
    std::size_t count;
    std::size_t stride;  // of `ranges`
    const void* ranges;
    const void** handles;
};
struct NvtxResizedRegions {
    std::uint16_t compatible;
    std::uint16_t size;
    std::uint32_t type;
    std::size_t count;
    std::size_t stride;
    const void* ranges;
};
struct NvtxEndedRegions {
    std::uint16_t compatible;
    std::uint16_t size;
    std::uint32_t reference_type;
    std::size_t count;
    std::size_t stride;
    const void* references;  // addresses, or handles of ours, which are the addresses
};
struct NvtxRegionName {
    std::uint32_t reference_type;
    std::uint32_t message_type;
    const void* region;
    NvtxMessage name;
    std::uint32_t category;
    std::uint32_t reserved;
};
struct NvtxRegionNames {
    std::uint16_t compatible;
    std::uint16_t size;
    std::uint32_t reserved;
    std::size_t count;
    std::size_t stride;
    const void* names;
    std::size_t reserved_too;
};

// nvToolsExtPayload.h: data with a schema at a range.
struct NvtxPayload {
    std::uint64_t schema;
    std::size_t bytes;
    const void* data;
};
struct NvtxSchemaEntry {
    std::uint64_t flags;
    std::uint64_t type;
    const char* name;
    const char* description;
    std::uint64_t detail;
    std::uint64_t offset;
    const void* semantics;
    const void* reserved;
};
struct NvtxSchema {
    std::uint64_t mask;
    const char* name;
    std::uint64_t type;
    std::uint64_t flags;
    const NvtxSchemaEntry* entries;
    std::size_t count;
    std::size_t bytes;
    std::size_t pack;
    std::uint64_t id;
    void* extension;
};
inline constexpr std::uint64_t kSchemaName = 1 << 1, kSchemaPack = 1 << 7, kSchemaId = 1 << 8;
inline constexpr std::uint64_t kSchemaStatic = 1, kFirstDynamicSchema = std::uint64_t{1} << 32;
inline constexpr std::uint64_t kEntryPlain = 0, kEntryMessage = 1 << 10;  // flags of an entry
inline constexpr std::uint64_t kEntryText = 75, kEntryUtf8 = 76, kEntryRegistered = 80;

}  // namespace mp::raw::abi
