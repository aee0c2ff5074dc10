// Products that overflow, into memory that is named by NVTX, by mptrace.h or by nobody, in ranges whose names are in
// payloads of NVTX.
//
//   named_memory nvtx|annotated|payload|plain|pool|mapped|freed
//
// mapped: two mappings in a row, as of memory that grows. The product is near the end of the first one; a sum of NCCL
// and a named weight are in both.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#define MPTRACE_NVTX
#include "instrument/preload/mptrace.h"

namespace {

constexpr int kSize = 16;
constexpr std::size_t kElements = kSize * kSize;
constexpr std::size_t kBytes = kElements * sizeof(__half);

// An arena with a region of its own for the result.
void name_regions(nvtxDomainHandle_t domain, char* arena, const char* result) {
    const nvtxMemVirtualRangeDesc_t whole{4 * kBytes, arena};
    nvtxMemHeapDesc_t heap{};
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof whole;
    heap.typeSpecificDesc = &whole;
    heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = "activations";
    nvtxMemHeapHandle_t const handle = nvtxMemHeapRegister(domain, &heap);

    const nvtxMemVirtualRangeDesc_t part{kBytes, result};
    nvtxMemRegionHandle_t region{};
    nvtxMemRegionsRegisterBatch_t batch{};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = handle;
    batch.regionCount = 1;
    batch.regionDescElementSize = sizeof part;
    batch.regionDescElements = &part;
    batch.regionHandleElementsOut = &region;
    nvtxMemRegionsRegister(domain, &batch);

    nvtxMemRegionNameDesc_t name{};
    name.regionRefType = NVTX_MEM_REGION_REF_TYPE_HANDLE;
    name.nameType = NVTX_MESSAGE_TYPE_ASCII;
    name.region.handle = region;
    name.name.ascii = "logits";
    nvtxMemRegionsNameBatch_t names{};
    names.extCompatID = NVTX_EXT_COMPATID_MEM;
    names.structSize = sizeof names;
    names.regionCount = 1;
    names.regionElementSize = sizeof name;
    names.regionElements = &name;
    nvtxMemRegionsName(domain, &names);
}

struct Place {
    std::int32_t layer;
    const char* part;
};

// A range whose name is in the payload, as in NVTX's own examples.
std::uint64_t schema_of_places(nvtxDomainHandle_t domain) {
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "layer", nullptr, 0, 0, nullptr, nullptr},
        {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "part", nullptr, 0,
         offsetof(Place, part), nullptr, nullptr}};
    nvtxPayloadSchemaAttr_t schema{};
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    schema.name = "place";
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries;
    schema.numEntries = 2;
    schema.payloadStaticSize = sizeof(Place);
    return nvtxPayloadSchemaRegister(domain, &schema);
}

void push_numbered(const char* name, std::int64_t number) {
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    range.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    range.payload.llValue = number;
    nvtxRangePushEx(&range);
}

// Two mappings of the least size, one behind the other. The end of the first.
char* map_twice(std::size_t& bytes) {
    cudaFree(nullptr);  // makes a context
    CUmemAllocationProp where{};
    where.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    where.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const CUmemAccessDesc access{where.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cuMemGetAllocationGranularity(&bytes, &where, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    CUdeviceptr at = 0;
    cuMemAddressReserve(&at, 2 * bytes, 0, 0, 0);
    for (const CUdeviceptr begin : {at, at + bytes}) {
        CUmemGenericAllocationHandle memory = 0;
        cuMemCreate(&memory, bytes, &where, 0);
        if (cuMemMap(begin, bytes, 0, memory, 0) != CUDA_SUCCESS) return nullptr;
        cuMemRelease(memory);
    }
    cuMemSetAccess(at, 2 * bytes, &access, 1);
    return reinterpret_cast<char*>(at + bytes);
}

// A sum over one rank, from before the border of two mappings to behind it.
bool add_across(char* border, cudaStream_t stream) {
    ncclComm_t comm = nullptr;
    const bool good =
        ncclCommInitAll(&comm, 1, nullptr) == ncclSuccess &&
        ncclAllReduce(border - 256, border - 256, 256, ncclFloat16, ncclSum, comm, stream) == ncclSuccess;
    return good && cudaDeviceSynchronize() == cudaSuccess && ncclCommDestroy(comm) == ncclSuccess;
}

}  // namespace

int main(int, char** argv) {
    const std::string how = argv[1];
    char* arena = nullptr;
    const auto allocate = [&] {
        if (how == "pool")
            cudaMallocAsync(reinterpret_cast<void**>(&arena), 4 * kBytes, nullptr);
        else
            cudaMalloc(reinterpret_cast<void**>(&arena), 4 * kBytes);
    };
    std::size_t mapped = 0;
    char* const border = how == "mapped" ? map_twice(mapped) : nullptr;
    if (border)
        arena = border - 3 * kBytes;
    else
        allocate();
    const std::vector<__half> large(kElements, __float2half(1000.0f));
    char* const result = arena + kBytes;
    cudaMemcpy(arena, large.data(), kBytes, cudaMemcpyHostToDevice);
    nvtxDomainHandle_t const domain = nvtxDomainCreateA("program");
    if (how == "nvtx") name_regions(domain, arena, result);
    const long long sizes[] = {kSize, kSize};
    const std::vector<__half> weight(kElements, __float2half(0.5f));
    if (border) cudaMemcpy(border - kBytes / 2, weight.data(), kBytes, cudaMemcpyHostToDevice);
    if (border && mptrace_tensor)
        mptrace_tensor(border - kBytes / 2, MPTRACE_FP16, sizes, 2, MPTRACE_PARAMETER, "weight");
    if (how == "annotated" && mptrace_tensor)
        mptrace_tensor(result, MPTRACE_FP16, sizes, 2, MPTRACE_BUFFER, "scores");
    if (how == "payload")
        mptrace_nvtx_tensor(result, MPTRACE_FP16, sizes, 2, MPTRACE_BUFFER, "probabilities");

    cublasLtHandle_t blas = nullptr;
    cublasLtCreate(&blas);
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, kSize, kSize, kSize);
    const float one = 1, zero = 0;
    const std::uint64_t schema = schema_of_places(domain);
    bool good = true;
    const int steps = how == "freed" ? 1 : 3;
    for (int step = 0; step < steps; ++step) {
        push_numbered("Train step", step);
        push_numbered("Layer", 7);
        const Place place{7, "attention"};
        const nvtxPayloadData_t payload{schema, sizeof place, &place};
        nvtxRangePushPayload(domain, &payload, 1);
        good = cublasLtMatmul(blas, product, &one, arena, layout, arena, layout, &zero, result, layout,
                              result, layout, nullptr, nullptr, 0, nullptr) == CUBLAS_STATUS_SUCCESS &&
               good;
        // The figures of the product are there, and nobody has read them: that is done in the next call.
        if (how == "freed")
            good = cudaDeviceSynchronize() == cudaSuccess && cudaFree(arena) == cudaSuccess && good;
        good = nvtxRangePopPayload(domain, nullptr, 0) == NVTX_NO_PUSH_POP_TRACKING && good;
        nvtxRangePop();
        if (border) good = add_across(border, nullptr) && good;
        nvtxRangePop();
    }
    good = cudaDeviceSynchronize() == cudaSuccess && good;
    std::puts(good ? "done" : "failed");
}
