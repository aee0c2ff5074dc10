// The exported functions of the fake libcuda.so.1: those that our measuring code and the other fakes use. They check
// what the real driver checks: the context, captures, handles.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"
#include "tests/fakes/cuda/streams.hpp"
#include "tests/kernels/cuda/host_kernels.hpp"

struct CUgraphExec_st {
    std::shared_ptr<std::vector<mp::fake::Work>> works;
};

namespace mp::fake {
namespace {

int setting(const char* name, int otherwise) {
    const char* const value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

constexpr int kMostDevices = 64;
constexpr std::size_t kGranularity = 2 << 20;  // of memory that a program maps itself
char contexts[kMostDevices];

// Null: there is no such device.
CUcontext context_of(int device) {
    return device < 0 || device >= kMostDevices ? nullptr : reinterpret_cast<CUcontext>(contexts + device);
}
int device_of(CUcontext context) {
    return context ? static_cast<int>(reinterpret_cast<char*>(context) - contexts) : -1;
}

char* pointer(CUdeviceptr at) { return reinterpret_cast<char*>(at); }
char* on_device(CUdeviceptr at) { return mp::fake::on_device(pointer(at)); }

thread_local std::vector<int> below;  // the devices of the contexts under the current one

CUresult fill(CUdeviceptr at, unsigned char value, std::size_t bytes, CUstream stream) {
    return enqueue(stream, [at, value, bytes] { std::memset(on_device(at), value, bytes); });
}

CUresult then_wait(CUresult result, CUstream stream) {
    return result == CUDA_SUCCESS ? wait(stream) : result;
}

// The kernel of kernels/cuda with this name, compiled for the host.
CUfunction measuring_kernel(const char* name) {
    static auto* const all = new std::map<std::pair<int, std::string>, CUfunc_st>;
    const cuda::HostKernel* const kernel = cuda::host_kernel(name);
    if (!kernel) return nullptr;
    const std::lock_guard lock(mutex());
    CUfunc_st& function = (*all)[{current_device(), name}];
    if (!function.run) {
        function = {name,
                    {kernel->bytes},
                    [kernel](unsigned, void** arguments) { kernel->run(arguments[0]); },
                    current_device()};
    }
    return &function;
}

}  // namespace
}  // namespace mp::fake

using namespace mp::fake;

// The check at the begin of each call: a fault that the test asks for, then the context.
#define MP_ENTER_WITHOUT_CONTEXT(name) \
    if (const int code = inside() ? 0 : fault(name)) return static_cast<CUresult>(code)
#define MP_ENTER(name)              \
    MP_ENTER_WITHOUT_CONTEXT(name); \
    if (current_device() < 0) return CUDA_ERROR_INVALID_CONTEXT

extern "C" {

CUresult cuInit(unsigned) {
    MP_ENTER_WITHOUT_CONTEXT("cuInit");
    return initialise();
}
CUresult cuDriverGetVersion(int* version) {
    MP_ENTER_WITHOUT_CONTEXT("cuDriverGetVersion");
    *version = setting("MP_FAKE_CUDA_DRIVER", 13000);
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult code, const char** name) {
    *name = code == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_OF_FAKE";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult code, const char** text) {
    *text = code == CUDA_SUCCESS ? "no error" : "an error of the fake driver";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    MP_ENTER_WITHOUT_CONTEXT("cuDeviceGetCount");
    *count = setting("MP_FAKE_CUDA_DEVICES", 8);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* into, int ordinal) {
    MP_ENTER_WITHOUT_CONTEXT("cuDeviceGet");
    *into = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* into, int length, CUdevice) {
    std::strncpy(into, "fake GPU of the tests", static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
    MP_ENTER_WITHOUT_CONTEXT("cuDeviceGetAttribute");
    const int capability = setting("MP_FAKE_CUDA_CAPABILITY", 90);
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = 4;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *value = capability / 10;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *value = capability % 10;
            break;
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
            *value = 1;
            break;
        default:
            *value = 0;
    }
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* into, CUdevice device) {
    MP_ENTER_WITHOUT_CONTEXT("cuDevicePrimaryCtxRetain");
    *into = context_of(device);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* into) {
    MP_ENTER_WITHOUT_CONTEXT("cuCtxGetCurrent");
    *into = context_of(current_device());
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    MP_ENTER_WITHOUT_CONTEXT("cuCtxSetCurrent");
    set_current(device_of(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
    MP_ENTER_WITHOUT_CONTEXT("cuCtxPushCurrent_v2");
    below.push_back(current_device());
    set_current(device_of(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* into) {
    MP_ENTER("cuCtxPopCurrent_v2");
    if (into) *into = context_of(current_device());
    set_current(below.empty() ? -1 : below.back());
    if (!below.empty()) below.pop_back();
    return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
    MP_ENTER_WITHOUT_CONTEXT("cuCtxGetId");
    *id = static_cast<unsigned long long>(context ? device_of(context) : current_device()) + 1;
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    MP_ENTER_WITHOUT_CONTEXT("cuThreadExchangeStreamCaptureMode");
    std::swap(*mode, capture_mode_of_thread());
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* into) {
    MP_ENTER("cuCtxGetDevice");
    *into = current_device();
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
    MP_ENTER("cuCtxSynchronize");
    return wait_all();
}

CUresult cuModuleLoadData(CUmodule* into, const void*) {
    MP_ENTER("cuModuleLoadData");
    *into = reinterpret_cast<CUmodule>(context_of(current_device()));
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
    MP_ENTER("cuModuleUnload");
    return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* into, CUmodule, const char* name) {
    MP_ENTER("cuModuleGetFunction");
    *into = measuring_kernel(name);
    return *into ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (index >= function->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    std::size_t at = 0;
    for (std::size_t i = 0; i <= index; ++i) {
        const std::size_t alignment = function->sizes[i] % 8 == 0 ? 8 : 4;
        at = (at + alignment - 1) / alignment * alignment;
        if (i < index) at += function->sizes[i];
    }
    *offset = at;
    if (size) *size = function->sizes[index];
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, std::size_t) {
    MP_ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *blocks = 2;
    return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** arguments, void** extra) {
    MP_ENTER_WITHOUT_CONTEXT("cuLaunchKernel");
    return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, arguments, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** arguments, void** extra) {
    return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                          c->blockDimZ, c->sharedMemBytes, c->hStream, arguments, extra);
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    MP_ENTER("cuLaunchHostFunc");
    return enqueue(stream, [function, data] { function(data); });
}

CUresult cuMemAlloc(CUdeviceptr* into, std::size_t bytes) {
    *into = 0;
    MP_ENTER("cuMemAlloc_v2");
    return allocate(into, bytes);
}
CUresult cuMemFree(CUdeviceptr at) {
    MP_ENTER("cuMemFree_v2");
    return release(at);
}
// The one pool of the device. What is freed in order of a stream is freed when the stream has come there.
CUresult cuMemAllocAsync(CUdeviceptr* into, std::size_t bytes, CUstream) {
    *into = 0;
    MP_ENTER("cuMemAllocAsync");
    return allocate(into, bytes, true);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* into, std::size_t bytes, CUmemoryPool, CUstream stream) {
    return cuMemAllocAsync(into, bytes, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
    MP_ENTER("cuMemFreeAsync");
    return enqueue(stream, [at] { forget(at); });
}
// Memory that a program maps itself. A handle is its size, and ranges of addresses are memory of the host.
CUresult cuMemGetAllocationGranularity(std::size_t* into, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
    MP_ENTER("cuMemGetAllocationGranularity");
    *into = kGranularity;
    return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* into, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
    MP_ENTER("cuMemAddressReserve");
    if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
    *into = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(kGranularity, bytes));
    return *into ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr at, std::size_t) {
    MP_ENTER("cuMemAddressFree");
    std::free(pointer(at));
    return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* into, std::size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
    MP_ENTER("cuMemCreate");
    if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
    *into = bytes;
    return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
    MP_ENTER("cuMemMap");
    return offset == 0 && bytes == handle ? add_mapping(at, bytes) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
    MP_ENTER("cuMemUnmap");
    return remove_mapping(at, bytes);
}
CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
    return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void** into, std::size_t bytes, unsigned) {
    *into = nullptr;
    MP_ENTER("cuMemHostAlloc");
    if (forbidden_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return pin(into, bytes);
}
CUresult cuMemHostRegister(void* at, std::size_t bytes, unsigned) {
    MP_ENTER("cuMemHostRegister_v2");
    if (forbidden_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return add_pinned(at, bytes);
}
CUresult cuMemHostUnregister(void* at) {
    MP_ENTER("cuMemHostUnregister");
    return remove_pinned(at);
}
CUresult cuMemFreeHost(void* at) {
    MP_ENTER("cuMemFreeHost");
    return unpin(at);
}
CUresult cuMemGetInfo(std::size_t* available, std::size_t* total) {
    MP_ENTER("cuMemGetInfo_v2");
    *available = *total = std::size_t{1} << 30;
    return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr at) {
    MP_ENTER("cuMemGetAddressRange_v2");
    const char* start = nullptr;
    std::size_t size = 0;
    if (!range_of(pointer(at), &start, &size)) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = reinterpret_cast<CUdeviceptr>(start);
    if (bytes) *bytes = size;
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    MP_ENTER("cuMemcpyDtoHAsync_v2");
    return copy(to, pointer(from), bytes, stream);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    MP_ENTER("cuMemcpyHtoDAsync_v2");
    return copy(pointer(to), from, bytes, stream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    MP_ENTER("cuMemcpyDtoDAsync_v2");
    return copy(pointer(to), pointer(from), bytes, stream);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    MP_ENTER("cuMemcpyAsync");
    return copy(pointer(to), pointer(from), bytes, stream);
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
    MP_ENTER("cuMemcpyDtoH_v2");
    return then_wait(copy(to, pointer(from), bytes, nullptr), nullptr);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
    MP_ENTER("cuMemcpyHtoD_v2");
    return then_wait(copy(pointer(to), from, bytes, nullptr), nullptr);
}
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, std::size_t n) {
    MP_ENTER("cuMemsetD8_v2");
    return fill(at, value, n, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t n, CUstream stream) {
    MP_ENTER("cuMemsetD8Async");
    return fill(at, value, n, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, std::size_t n, CUstream stream) {
    MP_ENTER("cuMemsetD32Async");
    return enqueue(stream, [at, value, n] {
        for (std::size_t i = 0; i < n; ++i) std::memcpy(on_device(at) + 4 * i, &value, 4);
    });
}
CUresult cuPointerGetAttribute(void* into, CUpointer_attribute which, CUdeviceptr at) {
    MP_ENTER("cuPointerGetAttribute");
    const Memory kind = kind_of(pointer(at));
    if (kind == Memory::pageable) return CUDA_ERROR_INVALID_VALUE;
    const char* start = nullptr;
    std::size_t bytes = 0;
    std::uint64_t id = 0;
    int owner = 0;
    if (which != CU_POINTER_ATTRIBUTE_MEMORY_TYPE && !range_of(pointer(at), &start, &bytes, &id, &owner))
        return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(into) =
                kind == Memory::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            *static_cast<std::uint64_t*>(into) = id;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *static_cast<int*>(into) = owner;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<const char**>(into) = start;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *static_cast<std::size_t*>(into) = bytes;
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            *static_cast<bool*>(into) = !is_pooled(pointer(at)) && !is_mapped(pointer(at));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *static_cast<void**>(into) = is_pooled(pointer(at)) ? context_of(owner) : nullptr;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuStreamCreate(CUstream* into, unsigned flags) {
    MP_ENTER("cuStreamCreate");
    return make_stream(into, (flags & CU_STREAM_NON_BLOCKING) == 0);
}
CUresult cuStreamCreateWithPriority(CUstream* into, unsigned flags, int) {
    return cuStreamCreate(into, flags);
}
CUresult cuStreamDestroy(CUstream stream) {
    MP_ENTER("cuStreamDestroy_v2");
    return end_stream(stream);
}
CUresult cuStreamSynchronize(CUstream stream) {
    MP_ENTER("cuStreamSynchronize");
    return wait(stream);
}
CUresult cuStreamQuery(CUstream given) {
    MP_ENTER("cuStreamQuery");
    if (forbidden_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const std::lock_guard lock(mutex());
    const CUstream stream = resolve(given);
    return stream->done == stream->submitted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    MP_ENTER("cuStreamWaitEvent");
    return event->stream ? wait_for(stream, event->stream, event->until) : CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* into) {
    MP_ENTER("cuStreamGetCtx");
    const std::lock_guard lock(mutex());
    *into = context_of(resolve(stream)->device);
    return CUDA_SUCCESS;
}
CUresult cuStreamGetId(CUstream given, unsigned long long* id) {
    const std::lock_guard lock(mutex());
    *id = resolve(given)->number;
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream given, CUstreamCaptureStatus* status) {
    MP_ENTER("cuStreamIsCapturing");
    const std::lock_guard lock(mutex());
    const CUstream stream = resolve(given);
    *status = !stream->capture  ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    MP_ENTER("cuStreamBeginCapture_v2");
    const std::lock_guard lock(mutex());
    if (!stream || stream == CU_STREAM_LEGACY || stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_unique<CUgraph_st>();
    stream->mode = mode;
    stream->capturer = std::this_thread::get_id();
    stream->invalid = false;
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* into) {
    MP_ENTER("cuStreamEndCapture");
    const std::lock_guard lock(mutex());
    *into = nullptr;
    if (!stream || !stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    const std::unique_ptr<CUgraph_st> graph = std::move(stream->capture);
    if (stream->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *into = new CUgraph_st{std::move(graph->works)};
    return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* into, CUgraph graph, unsigned long long) {
    MP_ENTER("cuGraphInstantiateWithFlags");
    *into = new CUgraphExec_st{std::make_shared<std::vector<Work>>(graph->works)};
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
    MP_ENTER("cuGraphLaunch");
    CUresult result = CUDA_SUCCESS;
    const GraphLaunchParameters parameters{graph, stream};
    const Announced announced({kCbidGraphLaunch, "cuGraphLaunch", nullptr, &parameters, &result, 0, nullptr});
    return result = enqueue(stream, [works = graph->works] {
               for (const Work& work : *works) work();
           });
}
CUresult cuGraphDestroy(CUgraph graph) {
    delete graph;
    return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
    delete graph;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* into, unsigned) {
    MP_ENTER("cuEventCreate");
    *into = new CUevent_st;
    (*into)->device = current_device();
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
    MP_ENTER("cuEventDestroy_v2");
    delete event;
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream given) {
    MP_ENTER("cuEventRecord");
    const std::lock_guard lock(mutex());
    if (resolve(given)->device != event->device) return CUDA_ERROR_INVALID_HANDLE;
    event->stream = resolve(given);
    event->until = event->stream->submitted;
    event->time = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
    MP_ENTER("cuEventQuery");
    if (forbidden_by_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!event->stream) return CUDA_SUCCESS;
    return has_passed(event->stream, event->until) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
    MP_ENTER("cuEventSynchronize");
    if (event->stream) block_until(event->stream, event->until);
    return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
    MP_ENTER("cuEventElapsedTime_v2");
    *ms = static_cast<float>(end->time - start->time) * 1e-6f;
    return CUDA_SUCCESS;
}

}  // extern "C"
