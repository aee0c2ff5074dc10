#include "instrument/torch/thread_state.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/torch/compat.hpp"

namespace mp::twin {
namespace {

bool is_main_thread() { return ::syscall(SYS_gettid) == ::getpid(); }

bool runs_python() {
    using Get = void* (*)();
    static const Get get = reinterpret_cast<Get>(::dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    return get && get() != nullptr;
}

c10::DispatchKeySet layers_above_backends() {
    using c10::DispatchKey;
    c10::DispatchKeySet keys = c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset;
    for (DispatchKey key :
         {DispatchKey::ADInplaceOrView, DispatchKey::Python, DispatchKey::PythonTLSSnapshot,
          DispatchKey::FuncTorchDynamicLayerBackMode, DispatchKey::FuncTorchDynamicLayerFrontMode,
          DispatchKey::FuncTorchVmapMode, DispatchKey::FuncTorchGradWrapper, DispatchKey::FuncTorchBatched,
          DispatchKey::Functionalize, DispatchKey::VmapMode, DispatchKey::Batched, DispatchKey::Tracer})
        keys = keys.add(key);
    return keys;
}

}  // namespace

ThreadState& thread_state() noexcept {
    static thread_local ThreadState state;
    return state;
}

bool thread_is_the_programs(ThreadState& state) noexcept {
    if (state.autograd_depth > 0) return true;
    if (!state.known) {
        state.belongs = is_main_thread() || runs_python();
        // Only `true` is final, because a thread may enter Python later for the callback of a future.
        state.known = state.belongs;
    }
    return state.belongs;
}

// Observers are switched off only if there are any: switching them makes torch rebuild its lists twice, which costs as
// much as a small op.
TwinScope::TwinScope() : state_(thread_state()) {
    static const c10::DispatchKeySet layers = layers_above_backends();
    if (state_.twin_scopes == 0) {
        layers_.emplace(layers);
        if (at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)) quiet_.emplace();
    }
    ++state_.twin_scopes;
}

}  // namespace mp::twin
