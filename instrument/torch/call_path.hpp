#pragma once

#include <cstdint>
#include <string>

#include "instrument/torch/layers.hpp"

namespace mp::twin {

// Where a C++ program asks for an op, when it names no layers itself: by the frames of its own executable
// among the callers. Nothing is opened or locked after the first call; a few microseconds each.
struct CallPath {
    LayerId layer = 0;          // "BlockImpl.through": the innermost functions of the program, at most two
    std::uint64_t address = 0;  // of the innermost call, as the executable's own file counts; 0: none found
};
CallPath call_path();

// "sharded_gpt+0x1f3c4": what a reader with the executable turns into file and line.
std::string source_of_call(std::uint64_t address);

}  // namespace mp::twin
