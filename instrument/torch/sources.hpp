#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "instrument/torch/layers.hpp"
#include "instrument/torch/op_info.hpp"

namespace mp::twin {

// The place that calls an op: "train.py:88", the innermost Python frame outside torch and outside the shim. For
// a backward op it is the place of the forward. Empty if there is no Python or no such frame.
//
// The look-up is done once per (layer, op, phase), a few hundred times per run. It takes the GIL, which torch has
// released during the op. So callers hold no lock, and threads without Python state do no look-up. Safe
// from any thread.
class Sources {
public:
    explicit Sources(const Layers& layers) : layers_(layers) {}

    std::string of(const Site&, const OpInfo&);

private:
    using Key = std::tuple<LayerId, const OpInfo*, Phase>;

    const Layers& layers_;
    std::mutex mutex_;
    std::map<Key, std::string> known_;
    std::map<LayerId, std::string> forward_;  // of the layer's first forward op
};

}  // namespace mp::twin
