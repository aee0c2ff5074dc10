#pragma once

#include <cstddef>

namespace mp::twin {

struct Adapter;

// Puts a boxed kernel of ours on the BackendSelect key of every op that has a backend kernel of its own:
// below autograd, autocast, Python and functorch, in every thread, before in-place writes. Composite ops
// have no such kernel, because their parts are seen; nor have ops with a BackendSelect kernel (factories). Also
// observes autograd nodes. Call once, before the program dispatches from other threads.
// Returns the number of ops.
std::size_t intercept_ops(Adapter&);

}  // namespace mp::twin
