#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <type_traits>

#include "instrument/torch/site.hpp"

namespace mp::twin {

struct LayersOfThread;  // layers.cpp
struct Boundary;        // measure.cpp

// All that the adapter knows about one thread of the program; its only thread-local. It is trivially destructible,
// because ops may still run while the thread's other thread-locals are destroyed. The objects that it points to live
// as long as the process, and only threads that run layers have them.
struct ThreadState {
    int depth = 0;           // inside a kernel, or inside our own work: ops here are not the program's
    int autograd_depth = 0;  // inside an autograd node
    int twin_scopes = 0;     // how many TwinScopes live
    bool known = false;      // whether `belongs` was decided
    bool belongs = false;    // the main thread, or a thread that runs Python code

    Site site;                          // of the op of the program that this thread is in
    const NodePlace* node = nullptr;    // of the innermost autograd node that runs; null outside a backward
    LayerId last_node_layer = 0;        // of the last autograd node that has a number
    std::int64_t last_node = -1;        // number of the last autograd node, not counting AccumulateGrad
    const void* backward = nullptr;     // whose node was the last to begin; it may have ended
    std::uint64_t backwards_ended = 0;  // at that time
    LayersOfThread* layers = nullptr;   // null until the thread asks for its layers
    Boundary* boundary = nullptr;       // the last result of the layer that runs
};
static_assert(std::is_trivially_destructible_v<ThreadState>);

ThreadState& thread_state() noexcept;

// Whether ops of this thread are the program's: on the main thread, on threads that run Python, and inside an autograd
// node. Ops of other worker threads are not. gloo's copies of received chunks, for example, would overwrite shadows
// with low-precision values.
bool thread_is_the_programs(ThreadState&) noexcept;

// During its lifetime ops of this thread are ours and are neither shadowed nor counted.
class Internal {
public:
    Internal() : state_(thread_state()) { ++state_.depth; }
    ~Internal() { --state_.depth; }
    Internal(const Internal&) = delete;
    Internal& operator=(const Internal&) = delete;

private:
    ThreadState& state_;
};

// The dispatch state in which the twin's ops run: no autograd, no autocast, no Python or functorch layer,
// and no observers of the program's profiler. Gradient mode stays as it is, because kernels choose by it.
// A nested TwinScope costs nothing. A real op never runs inside a TwinScope.
class TwinScope {
public:
    TwinScope();
    ~TwinScope() { --state_.twin_scopes; }
    TwinScope(const TwinScope&) = delete;
    TwinScope& operator=(const TwinScope&) = delete;

private:
    ThreadState& state_;
    Internal internal_;
    std::optional<c10::impl::ExcludeDispatchKeyGuard> layers_;
    std::optional<at::DisableRecordFunctionGuard> quiet_;
    at::NoTF32Guard ieee_;  // for matrix products of cuBLAS
};

}  // namespace mp::twin
