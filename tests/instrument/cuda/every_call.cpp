// Calls every function of cuBLAS and NCCL that mp-trace replaces, with arguments that differ from one another, on fakes
// that remember their last call (MP_FAKE_CUDA_CALLS=only). Prints of each call its name, its status, whether the fake
// saw these arguments, and the arguments; "-" stands for an address.
//
//   every_call small   arguments that a device could work with
//   every_call large   numbers of 64 bits that have no room in 32
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/calls.hpp"

namespace {

constexpr std::size_t kMost = 32, kPiece = 1 << 16;  // arguments of a call, bytes behind each address
bool g_large = false;

// What arguments point to. Arrays of the host have other numbers for each argument and each element.
struct Memory {
    char* device = nullptr;
    cublasHandle_t blas = nullptr;
    cublasLtMatmulDesc_t product = nullptr;
    std::array<cublasLtMatrixLayout_t, kMost> layouts{};
    cudaStream_t stream = nullptr;
    int ints[kMost][kMost];
    std::int64_t longs[kMost][kMost];
    cublasOperation_t operations[kMost][kMost];
    ncclComm_t comms[kMost][kMost] = {};
    ncclUniqueId ids[kMost][kMost];
    ncclConfig_t configs[kMost];
    ncclRedOp_t operators[kMost];
    cublasLtMatmulAlgo_t algorithms[kMost] = {};
    char communicator = 0;

    Memory() {
        cudaMalloc(reinterpret_cast<void**>(&device), kMost * kPiece);
        const std::vector<unsigned short> ones(kMost * kPiece / 2, 0x3c00);  // 1 in fp16, and finite in fp32
        cudaMemcpy(device, ones.data(), kMost * kPiece, cudaMemcpyHostToDevice);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cublasCreate(&blas);
        cublasSetStream(blas, stream);
        for (std::size_t i = 0; i < kMost; ++i)
            for (std::size_t j = 0; j < kMost; ++j) {
                // The largest is in the middle.
                longs[i][j] = ints[i][j] = static_cast<int>(3 + i + (j * 5) % 7);
                operations[i][j] = (i + j) % 2 == 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
                std::memset(&ids[i][j], static_cast<int>(i * kMost + j), sizeof ids[i][j]);
            }
        describe_product();
    }
    // D = A^T B of cuBLASLt, with the layouts at the places where its arguments are.
    void describe_product() {
        cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        const cublasOperation_t transposed = CUBLAS_OP_T;
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
        cublasLtMatrixLayoutCreate(&layouts[4], CUDA_R_16BF, 7, 33, 8);
        cublasLtMatrixLayoutCreate(&layouts[6], CUDA_R_16BF, 7, 6, 9);
        cublasLtMatrixLayoutCreate(&layouts[9], CUDA_R_32F, 33, 6, 34);
        cublasLtMatrixLayoutCreate(&layouts[11], CUDA_R_32F, 33, 6, 35);
    }
};

Memory& memory() {
    static Memory only;
    return only;
}

// One argument after the other. Small numbers rise, so that leading dimensions have room for rows.
class Arguments {
public:
    explicit Arguments(bool large) : large_(large) {}

    template <class T>
    T next() {
        const std::size_t at = at_++;
        Memory& m = memory();
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(at + 2 + (sizeof(T) == 8 && large_ ? std::size_t{1} << 33 : 0));
        } else if constexpr (std::is_enum_v<T>) {
            return next_enum<T>(at);
        } else if constexpr (std::is_same_v<T, cublasHandle_t>) {
            return m.blas;
        } else if constexpr (std::is_same_v<T, cublasLtMatmulDesc_t>) {
            return m.product;
        } else if constexpr (std::is_same_v<T, cublasLtMatrixLayout_t>) {
            return m.layouts[at];
        } else if constexpr (std::is_same_v<T, cudaStream_t>) {
            return m.stream;
        } else if constexpr (std::is_same_v<T, ncclComm_t>) {
            return reinterpret_cast<ncclComm_t>(&m.communicator);
        } else if constexpr (std::is_same_v<T, ncclUniqueId>) {
            return m.ids[at][0];
        } else {
            return next_address<T>(at);
        }
    }

private:
    template <class T>
    T next_enum(std::size_t at) {
        static constexpr cudaDataType_t kTypes[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F};
        if constexpr (std::is_same_v<T, cublasOperation_t>)
            return at % 2 == 1 ? CUBLAS_OP_T : CUBLAS_OP_C;
        else if constexpr (std::is_same_v<T, cudaDataType_t>)
            return kTypes[types_++];
        else if constexpr (std::is_same_v<T, cublasComputeType_t>)
            return CUBLAS_COMPUTE_16F;
        else if constexpr (std::is_same_v<T, cublasGemmAlgo_t>)
            return CUBLAS_GEMM_ALGO7;
        else if constexpr (std::is_same_v<T, ncclDataType_t>)
            return ncclBfloat16;
        else if constexpr (std::is_same_v<T, ncclRedOp_t>)
            return ncclMin;
        else
            return ncclScalarHostImmediate;
    }
    template <class T>
    T next_address(std::size_t at) {
        Memory& m = memory();
        using To = std::remove_const_t<std::remove_pointer_t<T>>;
        if constexpr (std::is_same_v<To, int>)
            return m.ints[at];
        else if constexpr (std::is_same_v<To, std::int64_t>)
            return m.longs[at];
        else if constexpr (std::is_same_v<To, cublasOperation_t>)
            return m.operations[at];
        else if constexpr (std::is_same_v<To, ncclComm_t>)
            return m.comms[at];
        else if constexpr (std::is_same_v<To, ncclUniqueId>)
            return m.ids[at];
        else if constexpr (std::is_same_v<To, ncclConfig_t>)
            return &m.configs[at];
        else if constexpr (std::is_same_v<To, ncclRedOp_t>)
            return &m.operators[at];
        else if constexpr (std::is_same_v<To, cublasLtMatmulAlgo_t>)
            return &m.algorithms[at];
        else
            return reinterpret_cast<T>(m.device + at * kPiece);
    }

    std::size_t at_ = 0;
    int types_ = 0;
    bool large_;
};

template <class T>
std::string text_of(const T& argument) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
        return " " + std::to_string(static_cast<long long>(argument));
    else
        return " -";
}

template <class Status, class... Types>
void call(const char* name, Status (*function)(Types...)) {
    // A large number of groups would have to have as many elements in each array.
    Arguments values(g_large && !std::strstr(name, "Grouped"));
    const std::tuple<Types...> arguments{values.template next<Types>()...};
    nvtxRangePushA(name);
    const Status status = std::apply(function, arguments);
    nvtxRangePop();
    const auto text = [name](const auto&... each) { return mp::fake::text_of_call(name, each...); };
    const std::string made = std::apply(text, arguments), seen = mp::fake::last_call();
    const auto values_of = [](const auto&... each) { return (std::string() + ... + text_of(each)); };
    std::printf("%s %d %s%s\n", name, int{status}, made == seen ? "same" : "other",
                std::apply(values_of, arguments).c_str());
    if (made != seen) std::printf("called %s\nseen   %s\n", made.c_str(), seen.c_str());
}

// With numbers of 32 and of 64 bits.
#define MP_CALL(name) call(#name, &(name))
#define MP_CALLS(name) MP_CALL(name), MP_CALL(name##_64)

// cublas_api.h has overloads for C++, which take the compute type as a type of data.
void call_overloaded() {
    using Handle = cublasHandle_t;
    using Op = cublasOperation_t;
    using Type = cudaDataType;
    using Compute = cublasComputeType_t;
    using Algo = cublasGemmAlgo_t;
    using In = const void*;
    using Ins = In const*;
    using Stride = long long;
    using GemmEx = cublasStatus_t (*)(Handle, Op, Op, int, int, int, In, In, Type, int, In, Type, int, In,
                                      void*, Type, int, Compute, Algo);
    using StridedEx = cublasStatus_t (*)(Handle, Op, Op, int, int, int, In, In, Type, int, Stride, In, Type,
                                         int, Stride, In, void*, Type, int, Stride, int, Compute, Algo);
    using BatchedEx = cublasStatus_t (*)(Handle, Op, Op, int, int, int, In, Ins, Type, int, Ins, Type, int,
                                         In, void* const*, Type, int, int, Compute, Algo);
    call("cublasGemmEx", static_cast<GemmEx>(&cublasGemmEx));
    call("cublasGemmStridedBatchedEx", static_cast<StridedEx>(&cublasGemmStridedBatchedEx));
    call("cublasGemmBatchedEx", static_cast<BatchedEx>(&cublasGemmBatchedEx));
}

void call_cublas() {
    call_overloaded();
    MP_CALL(cublasGemmEx_64);
    MP_CALL(cublasGemmStridedBatchedEx_64);
    MP_CALL(cublasGemmBatchedEx_64);
    MP_CALLS(cublasSgemmEx);
    MP_CALLS(cublasSgemm_v2);
    MP_CALLS(cublasHgemm);
    MP_CALLS(cublasSgemmStridedBatched);
    MP_CALLS(cublasHgemmStridedBatched);
    MP_CALLS(cublasSgemmBatched);
    MP_CALLS(cublasHgemmBatched);
    MP_CALLS(cublasSgemmGroupedBatched);
    MP_CALLS(cublasGemmGroupedBatchedEx);
    MP_CALLS(cublasSgemv_v2);
    MP_CALLS(cublasSgemvBatched);
    MP_CALLS(cublasHSHgemvBatched);
    MP_CALLS(cublasHSSgemvBatched);
    MP_CALLS(cublasTSTgemvBatched);
    MP_CALLS(cublasTSSgemvBatched);
    MP_CALLS(cublasSgemvStridedBatched);
    MP_CALLS(cublasHSHgemvStridedBatched);
    MP_CALLS(cublasHSSgemvStridedBatched);
    MP_CALLS(cublasTSTgemvStridedBatched);
    MP_CALLS(cublasTSSgemvStridedBatched);
    MP_CALL(cublasLtMatmul);
}

void call_nccl() {
    MP_CALL(ncclCommInitRank);
    MP_CALL(ncclCommInitRankConfig);
    MP_CALL(ncclCommInitRankScalable);
    MP_CALL(ncclCommInitAll);
    MP_CALL(ncclCommSplit);
    MP_CALL(ncclCommShrink);
    MP_CALL(ncclRedOpCreatePreMulSum);
    MP_CALL(ncclRedOpDestroy);
    MP_CALL(ncclGroupStart);
    MP_CALL(ncclGroupEnd);
    MP_CALL(ncclAllReduce);
    MP_CALL(ncclReduceScatter);
    MP_CALL(ncclReduce);
    MP_CALL(ncclAllGather);
    MP_CALL(ncclBroadcast);
    MP_CALL(ncclBcast);
    MP_CALL(ncclAlltoAll);
    MP_CALL(ncclGather);
    MP_CALL(ncclScatter);
    MP_CALL(ncclSend);
    MP_CALL(ncclRecv);
    MP_CALL(ncclCommDestroy);
    MP_CALL(ncclCommAbort);
}

}  // namespace

int main(int, char** words) {
    g_large = std::strcmp(words[1], "large") == 0;
    call_cublas();
    call_nccl();
    cudaDeviceSynchronize();
}
