// The one door: instrument/preload calls mptrace_attach once libtorch is mapped and initialised.

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

#include "instrument/torch/interceptor.hpp"
#include "instrument/torch/pool.hpp"
#include "instrument/torch/twin.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::twin {
namespace {

bool python_runs() {
    using Query = int (*)();
    const auto initialized = reinterpret_cast<Query>(::dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    return initialized && initialized() != 0;
}

bool is_listed(const trace::Options& options, Rank rank) {
    if (options.ranks.empty()) return true;
    for (const trace::RankRange& r : options.ranks)
        if (rank.value >= r.first && rank.value <= r.last) return true;
    return false;
}

void in_forked_child() {
    if (Session* s = session()) s->after_fork_in_child();
}

void at_exit() {
    if (Session* s = session()) s->finish();
}

const char* environment(const char* name) { return std::getenv(name); }

int attach(const char* options_path) {
    Result<trace::Options> options = trace::read_options(options_path);
    if (!options) {
        std::fprintf(stderr, "mp-trace: %s; the program runs untraced\n", options.error().message.c_str());
        return 1;
    }
    if (options->mode == trace::Mode::off) return 0;
    const trace::Identity identity = trace::identity_of_process(environment);
    // A twin's collectives need every rank; the other modes leave unlisted ranks alone.
    const bool twin_mode = options->mode == trace::Mode::step || options->mode == trace::Mode::trajectory;
    if (!twin_mode && !is_listed(*options, identity.rank)) return 0;
    // Never destroyed: the program's own static destructors may still dispatch ops.
    auto* const s = new Session(std::move(*options), identity, python_runs());
    auto* const t = new Twin(*s);
    set_twin(t);
    set_session(s);
    if (twin_mode) install_pool();
    intercept_ops(*s, *t);
    ::pthread_atfork(nullptr, nullptr, in_forked_child);
    // Python's own end comes through the shim's atexit; this serves C++ programs.
    if (!s->has_python()) std::atexit(at_exit);
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
