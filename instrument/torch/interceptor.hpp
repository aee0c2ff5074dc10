#pragma once

#include <cstddef>

namespace mp::twin {

struct Adapter;

// Registers our boxed kernel on the BackendSelect key of every op that has its own backend kernel. The kernel runs
// below autograd, autocast, Python and functorch, in every thread, before in-place writes. Two kinds of op get no such
// kernel: composite ops, because their parts are intercepted, and ops that already have a BackendSelect kernel
// (factories). Ops that are registered later get theirs before the next op runs. Also observes autograd nodes. Call
// once, before the program dispatches from other threads. Returns the number of ops.
std::size_t intercept_ops(Adapter&);

}  // namespace mp::twin
