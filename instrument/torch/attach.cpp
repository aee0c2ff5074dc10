// The entry point: instrument/preload calls mptrace_attach after libtorch is mapped and initialised.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "instrument/torch/adapter.hpp"
#include "instrument/torch/interceptor.hpp"
#include "instrument/torch/twin_allocator.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::twin {
namespace {

bool python_runs() {
    using Query = int (*)();
    const auto initialized = reinterpret_cast<Query>(::dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    return initialized && initialized() != 0;
}

// Not atexit(3), which does not tell the status of the process.
void at_exit(int status, void*) {
    try {
        adapter()->exited(status);
    } catch (const std::exception& e) {
        adapter()->faults.internal("the end", e.what());
    }
}

const char* environment(const char* name) { return std::getenv(name); }

int attach(const char* options_path) {
    Result<trace::Options> options = trace::read_options(options_path);
    if (!options) {
        std::fprintf(stderr, "mp-trace: %s; the program runs untraced\n", options.error().message.c_str());
        return 1;
    }
    if (options->mode == trace::Mode::off) return 0;
    trace::Identity identity = trace::identity_of_process(environment);
    // A twin's collectives need every rank. In the other modes an unlisted rank is not traced.
    const bool twin_mode = options->mode == trace::Mode::step || options->mode == trace::Mode::trajectory;
    if (!twin_mode && !lists(*options, identity.rank)) return 0;
    Adapter& a = start_adapter(std::move(*options), std::move(identity), python_runs());
    if (twin_mode) install_twin_allocator(a.pool);
    intercept_ops(a);
    ::on_exit(at_exit, nullptr);
    return 0;
}

}  // namespace
}  // namespace mp::twin

// Read from the file by the preload before it loads this library; padded, so that it can be read in pieces.
extern "C" __attribute__((visibility("default"), used)) const char mptrace_adapter_for[128] =
    "mptrace-adapter-for-torch:" MP_TORCH_ID;

extern "C" __attribute__((visibility("default"))) int mptrace_attach(const char* options_path) noexcept {
    try {
        return mp::twin::attach(options_path);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "mp-trace: the adapter did not start (%s); the program runs untraced\n",
                     e.what());
        return 1;
    }
}
