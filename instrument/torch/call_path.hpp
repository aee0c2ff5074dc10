#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "instrument/torch/layers.hpp"

namespace mp::twin {

// The place in a C++ program that calls an op.
struct CallPath {
    LayerId layer = 0;  // "BlockImpl.through": the innermost functions of the program, at most two
    std::uint64_t address =
        0;  // of the innermost call, as an address in the executable's file; 0: none found
};

// Names layers for C++ programs that name none themselves, by the frames of their own executable among the callers of
// an op. A look-up takes a few microseconds and one lock; the executable is read once. Safe from any thread.
class CallPaths {
public:
    explicit CallPaths(Layers& layers) : layers_(layers) {}

    CallPath here();

private:
    Layers& layers_;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, LayerId> known_;  // by functions
};

// "sharded_gpt+0x1f3c4": a reader that has the executable finds file and line for it.
std::string source_of_call(std::uint64_t address);

}  // namespace mp::twin
