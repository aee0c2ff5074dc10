// A fake libcudart.so.13. Programs built by nvcc register their kernels here. A launch runs the kernel's twin, a
// function host_NAME that the program exports, where NAME is the demangled name of the kernel without its result and
// parameters, with '_' for each other character: `void k<float>(float*)` is host_k_float_. host_NAME_sizes returns the
// sizes of the arguments, up to a 0.
#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"

using namespace mp::fake;

namespace {

thread_local cudaError_t last = cudaSuccess;

cudaError_t remember(cudaError_t code) {
    if (code != cudaSuccess && code != cudaErrorNotReady) last = code;
    return code;
}

// The codes of the driver and of the runtime are the same numbers since CUDA 10.1.
cudaError_t remember(CUresult code) { return remember(static_cast<cudaError_t>(code)); }

#define MP_ENTER(name)                                                                 \
    make_current();                                                                    \
    if (const int code = fault(name)) return remember(static_cast<cudaError_t>(code)); \
    const Inside calls_of_ours

CUstream native(cudaStream_t stream) { return reinterpret_cast<CUstream>(stream); }
CUdeviceptr address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

std::string twin_of(const char* mangled) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                      std::free);
    std::string name = status == 0 ? text.get() : mangled;
    name = name.substr(0, name.find('('));
    if (name.rfind("void ", 0) == 0) name = name.substr(5);
    for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    return "host_" + name;
}

struct Kernels {
    std::mutex mutex;
    std::map<const void*, CUfunc_st> of;  // by the address of the host stub
};
Kernels& kernels() {
    static Kernels* const all = new Kernels;
    return *all;
}

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local Configuration pushed;

cudaError_t launched(CUfunction function, dim3 grid, dim3 block, void** arguments, size_t shared,
                     cudaStream_t stream) {
    MP_ENTER("cudaLaunchKernel");
    if (!function || !function->run) return remember(cudaErrorInvalidDeviceFunction);
    return remember(launch(function, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
                           static_cast<unsigned>(shared), native(stream), arguments, nullptr));
}

cudaError_t copied(void* to, const void* from, size_t bytes, cudaStream_t stream) {
    return remember(copy(to, from, bytes, native(stream)));
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    CUfunc_st function;
    function.name = name;
    const std::string twin = twin_of(name);
    using Twin = void (*)(int threads, void** arguments);
    using Sizes = const unsigned* (*)();
    const auto run = reinterpret_cast<Twin>(dlsym(RTLD_DEFAULT, twin.c_str()));
    const auto sizes = reinterpret_cast<Sizes>(dlsym(RTLD_DEFAULT, (twin + "_sizes").c_str()));
    if (run && sizes) {
        for (const unsigned* size = sizes(); *size != 0; ++size) function.sizes.push_back(*size);
        function.run = [run](unsigned threads, void** arguments) {
            run(static_cast<int>(threads), arguments);
        };
    }
    const std::lock_guard lock(kernels().mutex);
    kernels().of[host] = std::move(function);
}
cudaError_t __cudaGetKernel(cudaKernel_t* into, const void* host) {
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().of.find(host);
    *into = found == kernels().of.end() ? nullptr : reinterpret_cast<cudaKernel_t>(&found->second);
    return *into ? cudaSuccess : remember(cudaErrorInvalidDeviceFunction);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
    pushed = {grid, block, shared, reinterpret_cast<cudaStream_t>(stream)};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *static_cast<cudaStream_t*>(stream) = pushed.stream;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
    return launched(reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
    cudaKernel_t kernel = nullptr;
    if (const cudaError_t code = __cudaGetKernel(&kernel, host)) return code;
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaGetLastError() {
    const cudaError_t code = last;
    last = cudaSuccess;
    return code;
}
cudaError_t cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(cudaError_t code) {
    return code == cudaSuccess ? "cudaSuccess" : "cudaErrorOfFake";
}
const char* cudaGetErrorString(cudaError_t code) {
    switch (code) {
        case cudaSuccess:
            return "no error";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorLaunchFailure:
            return "unspecified launch failure";
        case cudaErrorInvalidDeviceFunction:
            return "invalid device function";
        case cudaErrorStreamCaptureInvalidated:
            return "operation failed due to a previous error during capture";
        default:
            return "an error of the fake runtime";
    }
}
cudaError_t cudaGetDeviceCount(int* count) {
    MP_ENTER("cudaGetDeviceCount");
    return remember(cuDeviceGetCount(count));
}
cudaError_t cudaSetDevice(int device) {
    MP_ENTER("cudaSetDevice");
    int count = 0;
    if (cuDeviceGetCount(&count) != CUDA_SUCCESS || device < 0 || device >= count)
        return remember(cudaErrorInvalidDevice);
    select_device(device);
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    MP_ENTER("cudaGetDevice");
    *device = current_device();
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    MP_ENTER("cudaDeviceSynchronize");
    return remember(cuCtxSynchronize());
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return remember(cuDriverGetVersion(version)); }

cudaError_t cudaMalloc(void** into, size_t bytes) {
    *into = nullptr;
    MP_ENTER("cudaMalloc");
    return remember(allocate(reinterpret_cast<CUdeviceptr*>(into), bytes));
}
cudaError_t cudaFree(void* at) {
    MP_ENTER("cudaFree");
    return at ? remember(release(address(at))) : cudaSuccess;
}
cudaError_t cudaMallocAsync(void** into, size_t bytes, cudaStream_t stream) {
    MP_ENTER("cudaMallocAsync");
    return remember(cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(into), bytes, native(stream)));
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t stream) {
    MP_ENTER("cudaFreeAsync");
    return at ? remember(cuMemFreeAsync(address(at), native(stream))) : cudaSuccess;
}
cudaError_t cudaMallocHost(void** into, size_t bytes) {
    *into = nullptr;
    MP_ENTER("cudaMallocHost");
    return remember(pin(into, bytes));
}
cudaError_t cudaHostAlloc(void** into, size_t bytes, unsigned) { return cudaMallocHost(into, bytes); }
cudaError_t cudaFreeHost(void* at) {
    MP_ENTER("cudaFreeHost");
    return at ? remember(unpin(at)) : cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    MP_ENTER("cudaMemcpyAsync");
    return copied(to, from, bytes, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    MP_ENTER("cudaMemcpy");
    if (const cudaError_t code = copied(to, from, bytes, nullptr)) return code;
    return remember(wait(nullptr));
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
    MP_ENTER("cudaMemsetAsync");
    return remember(enqueue(native(stream), [=] { std::memset(at, value, bytes); }));
}
cudaError_t cudaMemset(void* at, int value, size_t bytes) {
    MP_ENTER("cudaMemset");
    return remember(enqueue(nullptr, [=] { std::memset(at, value, bytes); }));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* into, unsigned flags) {
    MP_ENTER("cudaStreamCreate");
    return remember(cuStreamCreate(reinterpret_cast<CUstream*>(into), flags));
}
cudaError_t cudaStreamCreate(cudaStream_t* into) { return cudaStreamCreateWithFlags(into, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    MP_ENTER("cudaStreamDestroy");
    return remember(cuStreamDestroy(native(stream)));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    MP_ENTER("cudaStreamSynchronize");
    return remember(wait(native(stream)));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    MP_ENTER("cudaStreamQuery");
    return remember(cuStreamQuery(native(stream)));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    MP_ENTER("cudaStreamWaitEvent");
    return remember(cuStreamWaitEvent(native(stream), reinterpret_cast<CUevent>(event), flags));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    MP_ENTER("cudaStreamIsCapturing");
    return remember(cuStreamIsCapturing(native(stream), reinterpret_cast<CUstreamCaptureStatus*>(status)));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    MP_ENTER("cudaStreamBeginCapture");
    return remember(cuStreamBeginCapture(native(stream), static_cast<CUstreamCaptureMode>(mode)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    MP_ENTER("cudaStreamEndCapture");
    return remember(cuStreamEndCapture(native(stream), reinterpret_cast<CUgraph*>(graph)));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* into, cudaGraph_t graph, unsigned long long flags) {
    MP_ENTER("cudaGraphInstantiate");
    return remember(cuGraphInstantiateWithFlags(reinterpret_cast<CUgraphExec*>(into),
                                                reinterpret_cast<CUgraph>(graph), flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    MP_ENTER("cudaGraphLaunch");
    return remember(cuGraphLaunch(reinterpret_cast<CUgraphExec>(graph), native(stream)));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return remember(cuGraphDestroy(reinterpret_cast<CUgraph>(graph)));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    return remember(cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(graph)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* into, unsigned flags) {
    MP_ENTER("cudaEventCreate");
    return remember(cuEventCreate(reinterpret_cast<CUevent*>(into), flags));
}
cudaError_t cudaEventCreate(cudaEvent_t* into) { return cudaEventCreateWithFlags(into, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    MP_ENTER("cudaEventDestroy");
    return remember(cuEventDestroy(reinterpret_cast<CUevent>(event)));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    MP_ENTER("cudaEventRecord");
    return remember(cuEventRecord(reinterpret_cast<CUevent>(event), native(stream)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    MP_ENTER("cudaEventQuery");
    return remember(cuEventQuery(reinterpret_cast<CUevent>(event)));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    MP_ENTER("cudaEventSynchronize");
    return remember(cuEventSynchronize(reinterpret_cast<CUevent>(event)));
}

}  // extern "C"
