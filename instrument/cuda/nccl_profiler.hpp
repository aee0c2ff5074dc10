#pragma once

#include <string>
#include <vector>

namespace mp::raw {

// A collective as NCCL's profiler interface tells it.
struct Chosen {
    const void* send;
    const void* receive;
    std::string algorithm;  // "RING/SIMPLE x 2"
};

// What this thread was told since it last asked. Interposed collectives ask after their call.
std::vector<Chosen> take_chosen() noexcept;
// From now on collectives are seen by their calls, and not counted as told by NCCL.
void calls_are_seen() noexcept;

}  // namespace mp::raw
