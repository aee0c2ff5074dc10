// Compared at compile time; there is nothing to run.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cupti.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

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
static_assert(kTransposeNone == CUBLAS_OP_N && kMathTF32 == CUBLAS_TF32_TENSOR_OP_MATH);
static_assert(kCompute16F == CUBLAS_COMPUTE_16F && kCompute16FPedantic == CUBLAS_COMPUTE_16F_PEDANTIC);
static_assert(kCompute32F == CUBLAS_COMPUTE_32F && kCompute32FPedantic == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(kCompute32FFast16F == CUBLAS_COMPUTE_32F_FAST_16F &&
              kCompute32FFast16BF == CUBLAS_COMPUTE_32F_FAST_16BF &&
              kCompute32FFastTF32 == CUBLAS_COMPUTE_32F_FAST_TF32);

static_assert(kLtComputeType == CUBLASLT_MATMUL_DESC_COMPUTE_TYPE &&
              kLtScaleType == CUBLASLT_MATMUL_DESC_SCALE_TYPE);
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
static_assert(kLtEpilogueBias == CUBLASLT_EPILOGUE_BIAS);

static_assert(kNcclInternalError == ncclInternalError && kNcclInProgress == ncclInProgress &&
              kNcclAvg == ncclAvg);
static_assert(kNcclFloat16 == ncclFloat16 && kNcclFloat32 == ncclFloat32 && kNcclFloat64 == ncclFloat64 &&
              kNcclBfloat16 == ncclBfloat16 && kNcclE4M3 == ncclFloat8e4m3 && kNcclE5M2 == ncclFloat8e5m2);

static_assert(sizeof(CallbackData) == sizeof(CUpti_CallbackData) &&
              offsetof(CallbackData, symbol) == offsetof(CUpti_CallbackData, symbolName) &&
              offsetof(CallbackData, correlation_id) == offsetof(CUpti_CallbackData, correlationId));
static_assert(sizeof(CuptiSubscriber) == sizeof(CUpti_SubscriberParams) &&
              offsetof(CuptiSubscriber, holder_size) == offsetof(CUpti_SubscriberParams, oldSubscriberSize));
static_assert(kCuptiDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API &&
              kCuptiManySubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

static_assert(sizeof(NvtxAttributes) == sizeof(nvtxEventAttributes_t) &&
              offsetof(NvtxAttributes, message_type) == offsetof(nvtxEventAttributes_t, messageType) &&
              offsetof(NvtxAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(kNvtxAscii == NVTX_MESSAGE_TYPE_ASCII && kNvtxWide == NVTX_MESSAGE_TYPE_UNICODE &&
              kNvtxRegistered == NVTX_MESSAGE_TYPE_REGISTERED);
static_assert(kNvtxNotTracked == NVTX_NO_PUSH_POP_TRACKING);

}  // namespace mp::raw::abi
