#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

// The fakes do what is documented of NVIDIA's libraries, as far as zero1_gpt and mp-trace rely on it.
namespace {

using Bf16 = __nv_bfloat16;

template <class T>
T* on_device(const std::vector<T>& values) {
    void* at = nullptr;
    EXPECT_EQ(cudaMalloc(&at, values.size() * sizeof(T)), cudaSuccess);
    cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    return static_cast<T*>(at);
}

template <class T>
std::vector<T> from_device(const T* at, std::size_t n) {
    std::vector<T> values(n);
    cudaMemcpy(values.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
}

struct Pause {  // work that lasts until it is released
    std::atomic<bool> released{false};
    static void run(void* self) {
        while (!static_cast<Pause*>(self)->released) std::this_thread::yield();
    }
};

TEST(FakeCuda, StreamsRunLateAndWaitForEvents) {
    cudaStream_t first, second;
    cudaEvent_t event;
    ASSERT_EQ(cudaStreamCreate(&first), cudaSuccess);
    cudaStreamCreate(&second);
    cudaEventCreate(&event);
    void* pinned = nullptr;
    cudaMallocHost(&pinned, 4);
    int* const device = on_device<int>({1});
    std::memset(pinned, 0, 4);
    Pause pause;
    cuLaunchHostFunc(reinterpret_cast<CUstream>(first), Pause::run, &pause);
    cudaMemsetAsync(device, 7, 4, first);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, second);
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    EXPECT_EQ(*static_cast<int*>(pinned), 0);
    pause.released = true;
    EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_EQ(*static_cast<int*>(pinned), 0x07070707);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST(FakeCuda, TheLegacyStreamWaitsForBlockingStreams) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int* const device = on_device<int>({1});
    Pause pause;
    cuLaunchHostFunc(reinterpret_cast<CUstream>(stream), Pause::run, &pause);
    cudaMemsetAsync(device, 0, 4, stream);
    std::thread([&] {
        usleep(20000);
        pause.released = true;
    }).detach();
    EXPECT_EQ(from_device(device, 1)[0], 0);
}

TEST(FakeCuda, ACaptureForbidsAllocationsAndQueries) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaEvent_t event;
    cudaEventCreate(&event);
    void* at = nullptr;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    std::thread([&] { EXPECT_EQ(cudaEventQuery(event), cudaSuccess); }).join();
    EXPECT_EQ(cudaMalloc(&at, 4), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST(FakeCuda, AGraphRunsOnlyWhenItIsLaunched) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int* const device = on_device<int>({1});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cudaMemsetAsync(device, 3, 4, stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(from_device(device, 1)[0], 1);
    ASSERT_EQ(cudaGraphInstantiate(&made, graph, 0), cudaSuccess);
    cudaGraphLaunch(made, stream);
    EXPECT_EQ(from_device(device, 1)[0], 0x03030303);
}

TEST(FakeCuda, AStreamAndAnEventBelongToTheirDevice) {
    cudaStream_t stream;
    cudaSetDevice(1);
    cudaStreamCreate(&stream);
    int* const there = on_device<int>({1});
    int device = -1;
    cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, reinterpret_cast<CUdeviceptr>(there));
    EXPECT_EQ(device, 1);
    CUevent event;
    CUcontext context = nullptr, first = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    cuCtxGetCurrent(&first);
    EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuStreamGetCtx(reinterpret_cast<CUstream>(stream), &context), CUDA_SUCCESS);
    EXPECT_NE(context, first);
    cuCtxPushCurrent(context);
    EXPECT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
    cuCtxPopCurrent(&context);
    cuCtxGetCurrent(&context);
    EXPECT_EQ(context, first);
    EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
    cudaGetLastError();
}

TEST(FakeCuda, AThreadWithoutContextIsRefused) {
    cudaSetDevice(0);
    CUdeviceptr at = 0;
    CUresult result = CUDA_SUCCESS;
    std::thread([&] { result = cuMemAlloc(&at, 4); }).join();
    EXPECT_EQ(result, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAlloc(&at, 4), CUDA_SUCCESS);
}

// One element of a product: k times 0.9, in fp16.
float product(cublasComputeType_t compute, cudaDataType_t scale, int k, int parts) {
    const std::vector<__half> ones(static_cast<std::size_t>(k), __float2half(1.0f));
    std::vector<__half> small(ones.size(), __float2half(0.9f));
    __half *const a = on_device(ones), *const b = on_device(small), *const c = on_device<__half>({__half{}});
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t call;
    cublasLtMatrixLayout_t la, lb, lc;
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&call, compute, scale);
    cublasLtMatrixLayoutCreate(&la, CUDA_R_16F, 1, static_cast<uint64_t>(k), 1);
    cublasLtMatrixLayoutCreate(&lb, CUDA_R_16F, static_cast<uint64_t>(k), 1, k);
    cublasLtMatrixLayoutCreate(&lc, CUDA_R_16F, 1, 1, 1);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    cublasLtMatmulAlgoGetHeuristic(handle, call, la, lb, lc, lc, nullptr, 1, &best, &found);
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    cublasLtMatmulAlgoConfigSetAttribute(&best.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts);
    cublasLtMatmulAlgoConfigSetAttribute(&best.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                         sizeof scheme);
    const float wide_one = 1, wide_zero = 0;
    const __half half_one = __float2half(1.0f), half_zero{};
    const bool half = scale == CUDA_R_16F;
    const void* const one = half ? static_cast<const void*>(&half_one) : &wide_one;
    const void* const zero = half ? static_cast<const void*>(&half_zero) : &wide_zero;
    EXPECT_EQ(
        cublasLtMatmul(handle, call, one, a, la, b, lb, zero, c, lc, c, lc, &best.algo, nullptr, 0, nullptr),
        CUBLAS_STATUS_SUCCESS);
    return __half2float(from_device(c, 1)[0]);
}

TEST(FakeCublasLt, RoundsWhereTheComputeTypeSays) {
    constexpr int k = 4096;
    const float exact = k * __half2float(__float2half(0.9f));  // 3687; fp16 has steps of 2 there
    EXPECT_NEAR(product(CUBLAS_COMPUTE_32F, CUDA_R_32F, k, 1), exact, 1);
    EXPECT_GT(std::abs(product(CUBLAS_COMPUTE_16F, CUDA_R_16F, k, 1) - exact), 10);
}

TEST(FakeCublasLt, AddsThePartsOfSplitKInTheOutputType) {
    // The running sum has 11 bits, and each of the 1024 additions rounds it.
    const float exact = 4096 * __half2float(__float2half(0.9f));
    EXPECT_GT(std::abs(product(CUBLAS_COMPUTE_32F, CUDA_R_32F, 4096, 1024) - exact), 10);
}

TEST(FakeCublas, SkipsNothingOfStridesAndTransposes) {
    // a is 2x3 stored with pitch 4, transposed; b is 2x2: c[3x2] = a^T b.
    float* const a = on_device<float>({1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0});
    float* const b = on_device<float>({1, 0, 2, 1});
    float* const c = on_device<float>(std::vector<float>(6, 1));
    cublasHandle_t handle;
    cublasCreate(&handle);
    const float one = 1, two = 2;
    ASSERT_EQ(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, 2, &one, a, 4, b, 2, &two, c, 3),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(from_device(c, 6), (std::vector<float>{3, 5, 7, 6, 12, 18}));
}

// What a reduction and a gather of it return. The ranks are threads, and all give these values.
template <class T>
std::vector<T> reduced(int ranks, const std::vector<T>& values, ncclDataType_t type, ncclRedOp_t op) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<T> result;
    std::vector<std::thread> all;
    for (int rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
            cudaSetDevice(rank);
            ncclComm_t comm;
            cudaStream_t stream;
            // The legacy stream of the copies must not wait for the other ranks.
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            ASSERT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
            T* const data = on_device(values);
            const std::size_t shard = values.size() / static_cast<std::size_t>(ranks);
            T* const own = data + static_cast<std::size_t>(rank) * shard;
            ncclGroupStart();
            ncclReduceScatter(data, own, shard, type, op, comm, stream);
            ncclAllGather(own, data, shard, type, comm, stream);
            ncclGroupEnd();
            cudaStreamSynchronize(stream);
            if (rank == 0) result = from_device(data, values.size());
            ncclCommDestroy(comm);
        });
    for (std::thread& t : all) t.join();
    return result;
}

// The mean of what ncclAvg returns for equal values, in parts of their mean.
template <class T>
double gain(int ranks, ncclDataType_t type) {
    std::vector<T> values;
    for (int i = 0; i < 9600; ++i) values.push_back(T(1.0f + static_cast<float>(i * 7919 % 9600) / 9600));
    const std::vector<T> averaged = reduced(ranks, values, type, ncclAvg);
    double before = 0, after = 0;
    for (const T& x : values) before += float(x);
    for (const T& x : averaged) after += float(x);
    return after / before;
}

TEST(FakeNccl, AverageMultipliesInTheDtypeBeforeItAdds) {
    EXPECT_NEAR(gain<Bf16>(3, ncclBfloat16), 1.00195, 3e-4);
    EXPECT_EQ(gain<Bf16>(2, ncclBfloat16), 1);
    EXPECT_NEAR(gain<float>(3, ncclFloat), 1, 1e-6);
}

TEST(FakeNccl, RoundsAfterEachHop) {
    // 1 + 2^-7 has 8 bits, as bf16: the sum of two is exact, and that of three is not.
    const std::vector<Bf16> values(96, Bf16(1.0078125f));
    for (const Bf16& x : reduced(3, values, ncclBfloat16, ncclSum)) ASSERT_EQ(float(x), 3.03125f);
    for (const Bf16& x : reduced(2, values, ncclBfloat16, ncclSum)) ASSERT_EQ(float(x), 2.015625f);
}

// Sums of one thread's communicators, each rank giving its number + 1 on its own device.
void expect_sums(const std::vector<ncclComm_t>& comms, const std::vector<int>& sums) {
    std::vector<int*> data;
    std::vector<cudaStream_t> streams(comms.size());
    for (std::size_t i = 0; i < comms.size(); ++i) {
        cudaSetDevice(static_cast<int>(i));
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
        data.push_back(on_device<int>({static_cast<int>(i) + 1}));
    }
    ncclGroupStart();
    for (std::size_t i = 0; i < comms.size(); ++i)
        EXPECT_EQ(ncclAllReduce(data[i], data[i], 1, ncclInt32, ncclSum, comms[i], streams[i]), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    for (std::size_t i = 0; i < comms.size(); ++i) {
        cudaSetDevice(static_cast<int>(i));
        cudaStreamSynchronize(streams[i]);
        EXPECT_EQ(from_device(data[i], 1)[0], sums[i]);
    }
}

TEST(FakeNccl, OneThreadHasSeveralRanks) {
    std::vector<ncclComm_t> all(4), ranks(4), pairs(4);
    ASSERT_EQ(ncclCommInitAll(all.data(), 4, nullptr), ncclSuccess);
    expect_sums(all, {10, 10, 10, 10});
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < 4; ++i) {
        cudaSetDevice(i);
        ASSERT_EQ(ncclCommInitRankScalable(&ranks[static_cast<std::size_t>(i)], 4, 3 - i, 1, &id, nullptr),
                  ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    expect_sums(ranks, {10, 10, 10, 10});
    ncclGroupStart();
    for (std::size_t i = 0; i < 4; ++i)
        ncclCommSplit(all[i], static_cast<int>(i) % 2, -static_cast<int>(i), &pairs[i], nullptr);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    expect_sums(pairs, {4, 6, 4, 6});
    int rank = -1, device = -1;
    ncclCommUserRank(pairs[3], &rank);  // the higher key is first
    ncclCommCuDevice(ranks[2], &device);
    EXPECT_EQ(rank, 0);
    EXPECT_EQ(device, 2);
}

TEST(FakeNccl, ItsNamesAreWeakOverStrongOnes) {
    EXPECT_EQ(dlsym(RTLD_DEFAULT, "ncclAllReduce"), dlsym(RTLD_DEFAULT, "pncclAllReduce"));
}

// A kernel that is registered as nvcc registers it.
extern "C" void host_twice_kernel_float_(int threads, void** arguments) {
    float* const data = *static_cast<float**>(arguments[0]);
    for (int i = 0; i < threads; ++i) data[i] *= 2;
}
extern "C" const unsigned* host_twice_kernel_float__sizes() {
    static const unsigned sizes[] = {8, 0};
    return sizes;
}
extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                                       dim3*, int*);

std::vector<std::string> seen;
void CUPTIAPI remember(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
        seen.push_back(std::string(call.callbackSite == CUPTI_API_ENTER ? "enter " : "exit ") +
                       call.symbolName);
}

TEST(FakeCupti, TellsOfLaunchesByTheRuntime) {
    constexpr const char* kName = "_Z12twice_kernelIfEvPT_";
    static char stub;
    __cudaRegisterFunction(nullptr, &stub, nullptr, kName, 0, nullptr, nullptr, nullptr, nullptr, nullptr);
    CUpti_SubscriberHandle handle;
    ASSERT_EQ(cuptiSubscribe(&handle, remember, nullptr), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiSubscribe(&handle, remember, nullptr), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    float* data = on_device<float>({1, 2, 3, 4});
    void* arguments[] = {&data};
    ASSERT_EQ(cudaLaunchKernel(&stub, dim3(1), dim3(4), arguments, 0, nullptr), cudaSuccess);
    cuptiUnsubscribe(handle);
    EXPECT_EQ(from_device(data, 4), (std::vector<float>{2, 4, 6, 8}));
    EXPECT_EQ(seen, (std::vector<std::string>{std::string("enter ") + kName, std::string("exit ") + kName}));
}

// In a process of its own, because the fakes read their faults once.
TEST(FakeCuda, FailsOnDemand) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("MP_FAKE_CUDA", "cudaMalloc#2=2,cuMemAlloc_v2=999", 1);
        execl("/proc/self/exe", "fakes", "--gtest_also_run_disabled_tests",
              "--gtest_filter=FakeCuda.DISABLED_SecondAllocationIsRefused", nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}
TEST(FakeCuda, DISABLED_SecondAllocationIsRefused) {
    void* at = nullptr;
    EXPECT_EQ(cudaMalloc(&at, 4), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&at, 4), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&at, 4), cudaSuccess);
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 4), CUDA_ERROR_UNKNOWN);
}

}  // namespace
