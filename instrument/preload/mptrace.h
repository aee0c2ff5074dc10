/* What a C, C++ or CUDA program may tell mp-trace about itself. Nothing to link: the symbols are weak, and absent when
 * the program does not run under `mp-trace --`, so test them before the call.
 *
 *     if (mptrace_layer_push) mptrace_layer_push("blocks.2.fc2");
 *
 * In programs without torch these calls and NVTX ranges may be mixed.
 *
 * Calls must come from the thread that runs the layer. None of them throws, waits or changes a result. */
#ifndef MPTRACE_H
#define MPTRACE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The layer that runs from here to the matching pop, by its full name. Backward ops are found through it. */
__attribute__((weak)) void mptrace_layer_push(const char* name);
__attribute__((weak)) void mptrace_layer_pop(void);

/* The loss of the next backward(), a pointer to an at::Tensor of one element, where that is not its root:
 * before a loss scale, or the mean of what is summed. */
__attribute__((weak)) void mptrace_loss(const void* tensor);

/* A step of the optimizer is over. From the first call on, steps are counted by these calls alone.
 * loss_scale: the one in force; negative when there is none. */
__attribute__((weak)) void mptrace_step(int skipped, double loss_scale);

/* The formats and the roles of a tensor. */
enum {
    MPTRACE_FP64 = 1,
    MPTRACE_FP32 = 2,
    MPTRACE_FP16 = 4,
    MPTRACE_BF16 = 5,
    MPTRACE_E4M3 = 6,
    MPTRACE_E5M2 = 7
};
enum {
    MPTRACE_PARAMETER = 0,
    MPTRACE_GRADIENT = 1,
    MPTRACE_BUFFER = 2,
    MPTRACE_OPTIMIZER_STATE = 3,
    MPTRACE_MASTER = 4 /* the fp32 weights of which 16-bit parameters are copies */
};

/* Contiguous memory on the GPU that holds a tensor of the model until the program ends, or until the next call with
 * the same data. For programs without torch; with it, mp-trace knows the tensors. */
__attribute__((weak)) void mptrace_tensor(const void* data, int dtype, const long long* sizes, int dims,
                                          int role, const char* name);

#ifdef __cplusplus
}
#endif

/* The same as an NVTX payload, which every tool that knows NVTX shows: define MPTRACE_NVTX before this header, where
 * CUDA's headers nvtx3/ are. Nothing to link, and nothing happens without a tool. Of more than 4 sizes the last ones are
 * multiplied. */
#ifdef MPTRACE_NVTX
#include <nvtx3/nvToolsExtPayload.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { /* NOLINT(modernize-use-using): C reads this header too */
    const void* data;
    int32_t dtype, role, dims;
    int64_t size0, size1, size2, size3;
    const char* name;
} mptrace_tensor_payload;

static inline uint64_t mptrace_nvtx_schema(nvtxDomainHandle_t domain) {
#define MPTRACE_ENTRY(type, field) \
    {0, NVTX_PAYLOAD_ENTRY_TYPE_##type, #field, NULL, 0, offsetof(mptrace_tensor_payload, field), NULL, NULL}
    static const nvtxPayloadSchemaEntry_t entries[] = {
        MPTRACE_ENTRY(ADDRESS, data), MPTRACE_ENTRY(INT32, dtype), MPTRACE_ENTRY(INT32, role),
        MPTRACE_ENTRY(INT32, dims),   MPTRACE_ENTRY(INT64, size0), MPTRACE_ENTRY(INT64, size1),
        MPTRACE_ENTRY(INT64, size2),  MPTRACE_ENTRY(INT64, size3), MPTRACE_ENTRY(CSTRING, name)};
#undef MPTRACE_ENTRY
    nvtxPayloadSchemaAttr_t schema;
    memset(&schema, 0, sizeof schema);
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    schema.name = "mptrace.tensor";
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries;
    schema.numEntries = sizeof entries / sizeof entries[0];
    schema.payloadStaticSize = sizeof(mptrace_tensor_payload);
    return nvtxPayloadSchemaRegister(domain, &schema);
}

static inline void mptrace_nvtx_tensor(const void* data, int dtype, const long long* sizes, int dims,
                                       int role, const char* name) {
    static nvtxDomainHandle_t domain;
    static uint64_t schema;
    mptrace_tensor_payload payload = {data, dtype, role, dims < 4 ? dims : 4, 1, 1, 1, 1, name};
    int64_t* const into[] = {&payload.size0, &payload.size1, &payload.size2, &payload.size3};
    nvtxPayloadData_t told = {0, sizeof payload, &payload};
    if (!domain) domain = nvtxDomainCreateA("mptrace");
    if (!schema) schema = mptrace_nvtx_schema(domain);
    for (int i = 0; i < dims; ++i) *into[i < 3 ? i : 3] *= sizes[i];
    told.schemaId = schema;
    nvtxMarkPayload(domain, &told, 1);
}
#endif

#endif
