// A driver that runs the kernels' bodies, compiled for the host: tests and the launcher notice no difference but the
// time. Linked in place of driver.cpp and image.cpp.
#include "kernels/cuda/driver.hpp"

#include <cstdlib>
#include <cstring>

#include "kernels/cuda/image.hpp"
#include "tests/kernels/cuda/fake_driver.hpp"
#include "tests/kernels/cuda/host_kernels.hpp"

namespace mp::cuda {

FakeDriver& fake() {
    static FakeDriver state;
    return state;
}

namespace {

constexpr int kNotFound = 500, kLaunchFailed = 719;

int find_function(CUfunc_st** into, CUmod_st*, const char* name) {
    *into = reinterpret_cast<CUfunc_st*>(const_cast<HostKernel*>(host_kernel(name)));
    return *into ? 0 : kNotFound;
}

int launch(CUfunc_st* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
           Stream, void** arguments, void**) {
    ++fake().launches;
    fake().blocks = blocks;
    if (fake().launch_fails) return kLaunchFailed;
    reinterpret_cast<HostKernel*>(function)->run(arguments[0]);
    return 0;
}

Driver host_driver() {
    Driver d;
    d.init = [](unsigned) { return 0; };
    d.version = [](int* v) { return *v = fake().version, 0; };
    d.device = [](int* device) { return *device = 0, fake().no_context ? 201 : 0; };
    d.attribute = [](int* v, int, int) { return *v = fake().processors, 0; };
    d.load = [](CUmod_st** m, const void*) { return *m = reinterpret_cast<CUmod_st*>(&fake()), 0; };
    d.unload = [](CUmod_st*) { return 0; };
    d.function = find_function;
    d.blocks_per_processor = [](int* n, CUfunc_st*, int, std::size_t) { return *n = 2, 0; };
    d.allocate = [](DeviceAddress* at, std::size_t bytes) {
        if (fake().memory_refused) return 2;
        *at = reinterpret_cast<DeviceAddress>(std::malloc(bytes));
        return 0;
    };
    d.free = [](DeviceAddress at) { return std::free(reinterpret_cast<void*>(at)), 0; };
    d.clear = [](DeviceAddress at, unsigned char value, std::size_t bytes, Stream) {
        return std::memset(reinterpret_cast<void*>(at), value, bytes), 0;
    };
    d.pin = [](void** at, std::size_t bytes, unsigned) { return *at = std::malloc(bytes), 0; };
    d.read = [](void* to, DeviceAddress from, std::size_t bytes, Stream) {
        return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
    };
    d.capturing = [](Stream, int* status) { return *status = fake().capturing ? 1 : 0, 0; };
    d.launch = launch;
    return d;
}

}  // namespace

const Driver& driver() noexcept {
    static const Driver functions_of_host = host_driver();
    return functions_of_host;
}

bool has_image() noexcept { return true; }
const void* image() noexcept { return &fake(); }

}  // namespace mp::cuda
