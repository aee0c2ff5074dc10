#pragma once

#include <cstddef>

namespace mp::twin {

class Session;
class Twin;

// Puts a boxed kernel of ours on the BackendSelect key of every op that has a backend kernel of its own:
// below autograd, autocast, Python and functorch, in every thread, before in-place writes. Composite ops
// stay transparent (their parts are seen), and so do ops with a BackendSelect kernel (factories). Also
// observes the beginning of autograd nodes. Call once, before the program dispatches from other threads.
// Returns the number of ops.
std::size_t intercept_ops(Session&, Twin&);

}  // namespace mp::twin
