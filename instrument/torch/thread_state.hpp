#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace mp::twin {

// What one thread of the program is doing, as far as we are concerned.
struct ThreadState {
    int depth = 0;                // inside a kernel, or inside our own work: ops here are not the program's
    int autograd_depth = 0;       // inside an autograd node
    int twin_scopes = 0;          // how many TwinScopes live
    bool known = false;           // whether `belongs` was decided
    bool belongs = false;         // the main thread, or a thread that runs Python code
    std::int64_t last_node = -1;  // sequence number of the last autograd node, AccumulateGrad left out
};

ThreadState& thread_state() noexcept;

// Ops of worker threads (gloo's copies of received chunks, for one) are not the program's and would
// overwrite shadows with low-precision values. The program's are the main thread's, those of threads that
// run Python, and whatever runs inside an autograd node.
bool thread_is_the_programs(ThreadState&) noexcept;

// While it lives, ops of this thread are ours: nothing is shadowed or counted.
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
// One inside another costs nothing; a real op never runs inside one.
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
};

}  // namespace mp::twin
