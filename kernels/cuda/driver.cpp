#include "kernels/cuda/driver.hpp"

#include <dlfcn.h>

namespace mp::cuda {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& into) {
    into = reinterpret_cast<Function>(dlsym(library, name));
    return into != nullptr;
}

Driver found() {
    Driver d;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return {};
    const bool all =
        find(library, "cuInit", d.init) && find(library, "cuDriverGetVersion", d.version) &&
        find(library, "cuCtxGetDevice", d.device) && find(library, "cuDeviceGetAttribute", d.attribute) &&
        find(library, "cuModuleLoadData", d.load) && find(library, "cuModuleUnload", d.unload) &&
        find(library, "cuModuleGetFunction", d.function) &&
        find(library, "cuOccupancyMaxActiveBlocksPerMultiprocessor", d.blocks_per_processor) &&
        find(library, "cuMemAlloc_v2", d.allocate) && find(library, "cuMemFree_v2", d.free) &&
        find(library, "cuMemsetD8Async", d.clear) && find(library, "cuMemHostAlloc", d.pin) &&
        find(library, "cuMemcpyDtoHAsync_v2", d.read) && find(library, "cuStreamIsCapturing", d.capturing) &&
        find(library, "cuLaunchKernel", d.launch);
    return all ? d : Driver{};
}

}  // namespace

const Driver& driver() noexcept {
    static const Driver functions = found();
    return functions;
}

}  // namespace mp::cuda
