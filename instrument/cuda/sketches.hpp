#pragma once

#include <cstdint>
#include <vector>

#include "instrument/cuda/events.hpp"
#include "kernels/cuda/results.hpp"
#include "runtime/trace/records.hpp"

// Which blocks of a reduction each rank sketches. All ranks choose the same ones, without a word between them: from the
// size of the tensor and the number of the call in its communicator.

namespace mp::raw {

struct Sketching {
    cuda::SketchedBlocks sent;      // of what this rank sends; count 0: the collective is not sketched
    cuda::SketchedBlocks received;  // those of them that it receives
    std::uint32_t which[cuda::SketchedBlocks::kMost] = {};  // in `sent`, of each block of `received`
    // Where the figures will be; null: they are not measured.
    const cuda::Sketch* sent_figures = nullptr;
    const cuda::Sketch* received_figures = nullptr;
    double factor = 1;  // by which this rank multiplies what it sends
    trace::SketchRecord head;
};

Sketching sketching_of(const Collective&);
void put_records(const Sketching&, std::vector<trace::SketchRecord>&);

}  // namespace mp::raw
