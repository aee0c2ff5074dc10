#pragma once

#include <string>
#include <vector>

namespace mp::raw {

// A collective as NCCL's profiler interface reports it.
struct Chosen {
    const void* send;
    const void* receive;
    std::string algorithm;  // "RING/SIMPLE x 2"
};

// What NCCL reported on this thread since the last call. Interposed collectives call it after the real function.
std::vector<Chosen> take_chosen() noexcept;
// From now on collectives are seen by their calls, and not counted as reported by NCCL.
void calls_are_seen() noexcept;

}  // namespace mp::raw
