// Compared at compile time; there is nothing to run.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cupti.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>

#include "instrument/cuda/abi.hpp"

namespace mp::raw::abi {

static_assert(kBufferId == CU_POINTER_ATTRIBUTE_BUFFER_ID &&
              kIpcCapable == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE &&
              kRangeStart == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
              kRangeSize == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

static_assert(kR32F == CUDA_R_32F && kR64F == CUDA_R_64F && kR16F == CUDA_R_16F && kR16BF == CUDA_R_16BF);
static_assert(kR8FE4M3 == CUDA_R_8F_E4M3 && kR8FE5M2 == CUDA_R_8F_E5M2);

static_assert(kNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED &&
              kPointerModeHost == CUBLAS_POINTER_MODE_HOST);
static_assert(kTransposeNone == CUBLAS_OP_N && kTransposeOther == CUBLAS_OP_T &&
              kMathTensorOp == CUBLAS_TENSOR_OP_MATH && kMathTF32 == CUBLAS_TF32_TENSOR_OP_MATH &&
              kMathReducesWide == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
static_assert(kCompute16F == CUBLAS_COMPUTE_16F && kCompute16FPedantic == CUBLAS_COMPUTE_16F_PEDANTIC);
static_assert(kCompute32F == CUBLAS_COMPUTE_32F && kCompute32FPedantic == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(kCompute32FFast16F == CUBLAS_COMPUTE_32F_FAST_16F &&
              kCompute32FFast16BF == CUBLAS_COMPUTE_32F_FAST_16BF &&
              kCompute32FFastTF32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kCompute64F == CUBLAS_COMPUTE_64F && kCompute64FPedantic == CUBLAS_COMPUTE_64F_PEDANTIC);
#if CUBLAS_VERSION >= 130000
static_assert(kCompute32FEmulated == CUBLAS_COMPUTE_32F_EMULATED_16BFX9 &&
              kCompute64FEmulated == CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT &&
              (CUBLAS_FP32_EMULATED_BF16X9_MATH & kMathMask) == CUBLAS_FP32_EMULATED_BF16X9_MATH &&
              (CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH & kMathMask) == CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH);
#endif

static_assert(kLtComputeType == CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
static_assert(kLtPointerMode == CUBLASLT_MATMUL_DESC_POINTER_MODE &&
              kLtTransA == CUBLASLT_MATMUL_DESC_TRANSA && kLtTransB == CUBLASLT_MATMUL_DESC_TRANSB &&
              kLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kLtBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
              kLtBiasType == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE &&
              kLtScaleOfA == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER &&
              kLtScaleOfD == CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
static_assert(kLtLayoutType == CUBLASLT_MATRIX_LAYOUT_TYPE &&
              kLtLayoutOrder == CUBLASLT_MATRIX_LAYOUT_ORDER &&
              kLtLayoutRows == CUBLASLT_MATRIX_LAYOUT_ROWS &&
              kLtLayoutColumns == CUBLASLT_MATRIX_LAYOUT_COLS &&
              kLtLayoutLeading == CUBLASLT_MATRIX_LAYOUT_LD &&
              kLtLayoutBatch == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              kLtLayoutStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kLtOrderColumn == CUBLASLT_ORDER_COL && kLtOrderRow == CUBLASLT_ORDER_ROW);
static_assert(kLtSplitK == CUBLASLT_ALGO_CONFIG_SPLITK_NUM &&
              kLtReductionScheme == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME &&
              kLtReduceInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE &&
              kLtReduceInOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
static_assert(kLtEpilogueNone == CUBLASLT_EPILOGUE_DEFAULT && kLtEpilogueBias == CUBLASLT_EPILOGUE_BIAS);

static_assert(kNcclInternalError == ncclInternalError && kNcclInProgress == ncclInProgress &&
              kNcclScalarOfHost == ncclScalarHostImmediate);
static_assert(kNcclFloat16 == ncclFloat16 && kNcclFloat32 == ncclFloat32 && kNcclFloat64 == ncclFloat64 &&
              kNcclBfloat16 == ncclBfloat16 && kNcclE4M3 == ncclFloat8e4m3 && kNcclE5M2 == ncclFloat8e5m2);

static_assert(sizeof(CallbackData) == sizeof(CUpti_CallbackData) &&
              offsetof(CallbackData, symbol) == offsetof(CUpti_CallbackData, symbolName) &&
              offsetof(CallbackData, correlation_id) == offsetof(CUpti_CallbackData, correlationId));
static_assert(sizeof(CuptiSubscriber) == sizeof(CUpti_SubscriberParams) &&
              offsetof(CuptiSubscriber, holder_size) == offsetof(CUpti_SubscriberParams, oldSubscriberSize));
static_assert(kCuptiDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API &&
              kCuptiManySubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

static_assert(offsetof(KernelActivity, start) == offsetof(CUpti_ActivityKernel10, start) &&
              offsetof(KernelActivity, end) == offsetof(CUpti_ActivityKernel10, end) &&
              offsetof(KernelActivity, correlation) == offsetof(CUpti_ActivityKernel10, correlationId));
static_assert(sizeof(ExternalActivity) == sizeof(CUpti_ActivityExternalCorrelation) &&
              offsetof(ExternalActivity, external) ==
                  offsetof(CUpti_ActivityExternalCorrelation, externalId) &&
              offsetof(ExternalActivity, correlation) ==
                  offsetof(CUpti_ActivityExternalCorrelation, correlationId));
static_assert(kActivityDriver == CUPTI_ACTIVITY_KIND_DRIVER &&
              kActivityRuntime == CUPTI_ACTIVITY_KIND_RUNTIME &&
              kActivityKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
              kActivityExternal == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
              kExternalCustom == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 &&
              kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

static_assert(kDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(kPool == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));

static_assert(sizeof(NvtxExtension) == sizeof(nvtxExtModuleInfo_t) &&
              offsetof(NvtxExtension, segments) == offsetof(nvtxExtModuleInfo_t, segments) &&
              sizeof(NvtxSegment) == sizeof(nvtxExtModuleSegment_t));
static_assert(kNvtxMemory == NVTX_EXT_MODULEID_MEM && kNvtxPayload == NVTX_EXT_PAYLOAD_MODULEID);
static_assert(sizeof(NvtxHeap) == sizeof(nvtxMemHeapDesc_t) &&
              offsetof(NvtxHeap, message) == offsetof(nvtxMemHeapDesc_t, message) &&
              sizeof(NvtxVirtualRange) == sizeof(nvtxMemVirtualRangeDesc_t) &&
              offsetof(NvtxVirtualRange, at) == offsetof(nvtxMemVirtualRangeDesc_t, ptr));
static_assert(sizeof(NvtxRegions) == sizeof(nvtxMemRegionsRegisterBatch_t) &&
              offsetof(NvtxRegions, handles) ==
                  offsetof(nvtxMemRegionsRegisterBatch_t, regionHandleElementsOut) &&
              sizeof(NvtxResizedRegions) == sizeof(nvtxMemRegionsResizeBatch_t) &&
              sizeof(NvtxEndedRegions) == sizeof(nvtxMemRegionsUnregisterBatch_t) &&
              offsetof(NvtxEndedRegions, references) ==
                  offsetof(nvtxMemRegionsUnregisterBatch_t, refElements));
static_assert(sizeof(NvtxRegionName) == sizeof(nvtxMemRegionNameDesc_t) &&
              offsetof(NvtxRegionName, name) == offsetof(nvtxMemRegionNameDesc_t, name) &&
              sizeof(NvtxRegionNames) == sizeof(nvtxMemRegionsNameBatch_t) &&
              offsetof(NvtxRegionNames, names) == offsetof(nvtxMemRegionsNameBatch_t, regionElements));
static_assert(kMemoryVirtual == NVTX_MEM_TYPE_VIRTUAL_ADDRESS);
static_assert(sizeof(NvtxPayload) == sizeof(nvtxPayloadData_t) &&
              sizeof(NvtxSchemaEntry) == sizeof(nvtxPayloadSchemaEntry_t) &&
              offsetof(NvtxSchemaEntry, offset) == offsetof(nvtxPayloadSchemaEntry_t, offset) &&
              sizeof(NvtxSchema) == sizeof(nvtxPayloadSchemaAttr_t) &&
              offsetof(NvtxSchema, id) == offsetof(nvtxPayloadSchemaAttr_t, schemaId));
static_assert(kSchemaName == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME &&
              kSchemaPack == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT &&
              kSchemaId == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID &&
              kSchemaStatic == NVTX_PAYLOAD_SCHEMA_TYPE_STATIC &&
              kFirstDynamicSchema == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
static_assert(kEntryMessage == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE &&
              kEntryText == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING &&
              kEntryUtf8 == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8 &&
              kEntryRegistered == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
static_assert(kNvtxPayloads == NVTX_PAYLOAD_TYPE_EXT && kNvtxUint64 == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 &&
              kNvtxInt64 == NVTX_PAYLOAD_TYPE_INT64 && kNvtxUint32 == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 &&
              kNvtxInt32 == NVTX_PAYLOAD_TYPE_INT32);

static_assert(sizeof(NvtxAttributes) == sizeof(nvtxEventAttributes_t) &&
              offsetof(NvtxAttributes, message_type) == offsetof(nvtxEventAttributes_t, messageType) &&
              offsetof(NvtxAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(kNvtxAscii == NVTX_MESSAGE_TYPE_ASCII && kNvtxWide == NVTX_MESSAGE_TYPE_UNICODE &&
              kNvtxRegistered == NVTX_MESSAGE_TYPE_REGISTERED);
static_assert(kNvtxNotTracked == NVTX_NO_PUSH_POP_TRACKING);

}  // namespace mp::raw::abi
