#pragma once

#include <cstdint>
#include <vector>

#include "instrument/cuda/ranges.hpp"
#include "runtime/trace/records.hpp"

// Times of kernels by layer, from CUPTI's activity API. CUPTI gives each launch the number that its thread pushed last
// (external correlation); we push the id of the place. Used for --device-times only, because CUPTI then makes a record
// of each call of CUDA. Any error ends it.

namespace mp::raw::activity {

// Begins with an open libcupti.
void begin(void* library) noexcept;
void stop() noexcept;
// In a forked child CUPTI must not be called.
void forget() noexcept;
// The ranges of the calling thread have changed.
void moved_to(PlaceId) noexcept;

// Launches of this thread are ours, not the program's.
class Ours {
public:
    Ours() noexcept;
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

private:
    bool pushed_;
};

// The times that have come since the last call, by place.
std::vector<trace::TimeRecord> take(const Places&);
// Asks for what is still in CUPTI's buffers.
void flush() noexcept;
// Kernels whose records were lost, because no buffer was free or too many launches were known by one half.
std::uint64_t dropped() noexcept;

}  // namespace mp::raw::activity
