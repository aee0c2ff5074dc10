// Two devices in one process, each with a rank of its own: products, and sums over both. The second device overflows in
// layer 1 of step 3, or both are fine and their sum overflows there, or nothing does.
//
//   two_devices all|group|threads|split [large|healthy|premultiplied|premultiplied-late]
//
//   all      one thread, ncclCommInitAll
//   group    one thread, a group of ncclCommInitRankScalable
//   threads  a thread per device, ncclCommInitRankConfig
//   split    as all; then the sums are over a communicator that was split off, in which the ranks are reversed
#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "instrument/preload/mptrace.h"

// With "premultiplied" each rank multiplies what it sends by a scalar of its own, with "-late" by one in device memory.
namespace {

constexpr int kDevices = 2, kSteps = 5, kLayers = 2, kSize = 128, kElements = kSize * kSize;

std::atomic<bool> good{true};
void check(bool is_good) {
    if (!is_good) good = false;
}

struct Range {
    explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
    ~Range() { nvtxRangePop(); }
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

class Device {
public:
    explicit Device(int number) : number_(number) {
        use();
        cublasLtCreate(&blas_);
        cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatrixLayoutCreate(&layout_, CUDA_R_16F, kSize, kSize, kSize);
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        for (__half** at : {&weight_, &input_, &gradient}) cudaMalloc(reinterpret_cast<void**>(at), kBytes);
        set(weight_, 0.01f);
        const long long sizes[] = {kSize, kSize};
        const std::string name = "weight of device " + std::to_string(number);
        if (mptrace_tensor) mptrace_tensor(weight_, MPTRACE_FP16, sizes, 2, MPTRACE_PARAMETER, name.c_str());
    }
    void use() const { cudaSetDevice(number_); }
    void multiply(float input) {
        use();
        set(input_, input);
        const float one = 1, zero = 0;
        check(cublasLtMatmul(blas_, product_, &one, weight_, layout_, input_, layout_, &zero, gradient,
                             layout_, gradient, layout_, nullptr, nullptr, 0,
                             stream) == CUBLAS_STATUS_SUCCESS);
    }
    void sum() const {
        check(ncclAllReduce(gradient, gradient, kElements, ncclFloat16, operator_, comm, stream) ==
              ncclSuccess);
    }
    // Not exact in fp16, and not the same on both. The number of the operator was another one's before.
    void make_operator(bool late) {
        __half factor = __float2half(100.0f);
        check(ncclRedOpCreatePreMulSum(&operator_, &factor, ncclFloat16, ncclScalarHostImmediate, comm) ==
              ncclSuccess);
        check(ncclRedOpDestroy(operator_, comm) == ncclSuccess);
        factor = __float2half(number_ == 0 ? 0.3f : 0.7f);
        void* at = &factor;
        if (late) {
            use();
            check(cudaMalloc(&at, sizeof factor) == cudaSuccess);
            check(cudaMemcpy(at, &factor, sizeof factor, cudaMemcpyHostToDevice) == cudaSuccess);
        }
        check(ncclRedOpCreatePreMulSum(&operator_, at, ncclFloat16,
                                       late ? ncclScalarDevice : ncclScalarHostImmediate,
                                       comm) == ncclSuccess);
        factor = __float2half(0);  // it was taken
    }
    // Each device moves its own weights, by values of its own.
    void update(int step) { set(weight_, 0.01f + 0.001f * static_cast<float>(step + number_)); }
    void wait() const {
        use();
        check(cudaStreamSynchronize(stream) == cudaSuccess);
    }

    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    __half* gradient = nullptr;

private:
    static constexpr std::size_t kBytes = kElements * sizeof(__half);

    void set(__half* at, float value) const {
        use();
        const std::vector<__half> values(kElements, __float2half(value));
        check(cudaMemcpyAsync(at, values.data(), kBytes, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    }

    int number_;
    ncclRedOp_t operator_ = ncclSum;
    cublasLtHandle_t blas_ = nullptr;
    cublasLtMatmulDesc_t product_ = nullptr;
    cublasLtMatrixLayout_t layout_ = nullptr;
    __half *weight_ = nullptr, *input_ = nullptr;
};

std::string what = "overflow";

float input_of(int device, int step, int layer) {
    const bool here = step == 3 && layer == 1;
    if (here && what == "large") return 30000.0f;
    return here && what == "overflow" && device == 1 ? 60000.0f : 1.0f + 0.37f * static_cast<float>(device);
}

void train(std::vector<Device*> devices, int first) {
    if (what.starts_with("premultiplied"))
        for (Device* device : devices) device->make_operator(what == "premultiplied-late");
    for (int step = 0; step < kSteps; ++step) {
        const Range of_step("Train step " + std::to_string(step));
        for (int layer = 0; layer < kLayers; ++layer) {
            const Range of_layer("Layer " + std::to_string(layer));
            for (std::size_t i = 0; i < devices.size(); ++i)
                devices[i]->multiply(input_of(first + static_cast<int>(i), step, layer));
            // The last device stays current: the group's end finds streams of others.
            check(ncclGroupStart() == ncclSuccess);
            for (Device* device : devices) device->sum();
            check(ncclGroupEnd() == ncclSuccess);
        }
        for (Device* device : devices) device->update(step), device->wait();
    }
}

ncclConfig_t settings() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    return config;
}

void make_in_group(std::vector<Device>& devices) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclConfig_t config = settings();
    check(ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < kDevices; ++i) {
        Device& device = devices[static_cast<std::size_t>(i)];
        device.use();
        check(ncclCommInitRankScalable(&device.comm, kDevices, i, 1, &id, &config) == ncclSuccess);
    }
    check(ncclGroupEnd() == ncclSuccess);
}

void make_all(std::vector<Device>& devices, bool split) {
    ncclComm_t comms[kDevices];
    check(ncclCommInitAll(comms, kDevices, nullptr) == ncclSuccess);
    for (int i = 0; i < kDevices; ++i) devices[static_cast<std::size_t>(i)].comm = comms[i];
    if (!split) return;
    check(ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < kDevices; ++i)
        check(ncclCommSplit(comms[i], 0, -i, &devices[static_cast<std::size_t>(i)].comm, nullptr) ==
              ncclSuccess);
    check(ncclGroupEnd() == ncclSuccess);
}

void run_threads(std::vector<Device>& devices) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<std::thread> threads;
    for (int i = 0; i < kDevices; ++i)
        threads.emplace_back([&devices, &id, i] {
            Device& device = devices[static_cast<std::size_t>(i)];
            ncclConfig_t config = settings();
            device.use();
            check(ncclCommInitRankConfig(&device.comm, kDevices, id, i, &config) == ncclSuccess);
            train({&device}, i);
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** words) {
    const std::string how = words[1];
    if (count > 2) what = words[2];
    std::vector<Device> devices;
    for (int i = 0; i < kDevices; ++i) devices.emplace_back(i);
    if (how == "threads") {
        run_threads(devices);
    } else {
        how == "group" ? make_in_group(devices) : make_all(devices, how == "split");
        train({&devices[0], &devices[1]}, 0);
    }
    for (const Device& device : devices) {
        device.use();
        std::vector<__half> result(1);
        cudaMemcpy(result.data(), device.gradient, sizeof(__half), cudaMemcpyDeviceToHost);
        std::printf("%a\n", static_cast<double>(__half2float(result[0])));
        check(ncclCommDestroy(device.comm) == ncclSuccess);
    }
    std::puts(good ? "done" : "failed");
}
