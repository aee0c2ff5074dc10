#include "tests/gpu/kernels/device.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace mp::cuda {
namespace {

void* library = nullptr;

// Calls a function of the driver and ends the program where it fails: this is a test.
template <class... Arguments>
void call(const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    const int code = function ? function(arguments...) : -1;
    if (code == 0) return;
    std::printf("FAILED %s: CUresult %d\n", name, code);
    std::fflush(stdout);
    std::_Exit(1);
}

}  // namespace

std::string Device::open() {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return "no libcuda.so.1";
    auto* init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    if (const int code = init(0); code != 0) return "cuInit: " + std::to_string(code);
    int count = 0;
    call("cuDeviceGetCount", &count);
    if (count == 0) return "no device";
    int device = 0;
    call("cuDeviceGet", &device, 0);
    char text[128] = {};
    call("cuDeviceGetName", static_cast<char*>(text), 128, device);
    name_ = text;
    call("cuDriverGetVersion", &version_);
    int major = 0, minor = 0;
    call("cuDeviceGetAttribute", &major, 75, device);
    call("cuDeviceGetAttribute", &minor, 76, device);
    capability_ = major * 10 + minor;
    void* context = nullptr;
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
    constexpr unsigned kNonBlocking = 1;
    call("cuStreamCreate", &stream, kNonBlocking);
    call("cuEventCreate", &begin_, 0u);
    call("cuEventCreate", &end_, 0u);
    return {};
}

char* Device::memory(std::size_t bytes) {
    Address at = 0;
    call("cuMemAlloc_v2", &at, bytes == 0 ? std::size_t{1} : bytes);
    device_.push_back(at);
    return reinterpret_cast<char*>(at);
}

void Device::copy(char* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    call("cuMemcpyHtoD_v2", reinterpret_cast<Address>(to), from, bytes);
}

void* Device::pinned(std::size_t bytes) {
    void* at = nullptr;
    call("cuMemHostAlloc", &at, bytes == 0 ? std::size_t{1} : bytes, 0u);
    host_.push_back(at);
    return at;
}

void Device::wait() { call("cuStreamSynchronize", stream); }

void Device::release() {
    wait();
    for (const Address at : device_) call("cuMemFree_v2", at);
    for (void* at : host_) call("cuMemFreeHost", at);
    device_.clear();
    host_.clear();
}

void Device::copy_on_device(char* to, const char* from, std::size_t bytes) {
    call("cuMemcpyDtoDAsync_v2", reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes,
         stream);
}

void Device::start() { call("cuEventRecord", begin_, stream); }

double Device::stop() {
    call("cuEventRecord", end_, stream);
    call("cuEventSynchronize", end_);
    float ms = 0;
    call("cuEventElapsedTime", &ms, begin_, end_);
    return static_cast<double>(ms);
}

bool Device::begin_capture() {
    constexpr int kThreadLocal = 1;
    call("cuStreamBeginCapture_v2", stream, kThreadLocal);
    return true;
}

bool Device::end_capture() {
    void* graph = nullptr;
    call("cuStreamEndCapture", stream, &graph);
    if (graph) call("cuGraphDestroy", graph);
    return graph != nullptr;
}

}  // namespace mp::cuda
