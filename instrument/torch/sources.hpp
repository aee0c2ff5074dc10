#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "instrument/torch/layers.hpp"
#include "instrument/torch/op_info.hpp"

namespace mp::twin {

// The place of this call: "train.py:88", the innermost Python frame outside torch and outside the shim. Not for
// backward.
std::string source_of(const Site&);

// The place that calls an op. For a backward op it is the place of the forward op that made its node, or of the
// layer's first one. Empty if there is no Python or no such frame.
//
// The look-up is done once per (layer, op, phase, dtype), a few hundred times per run. It takes the GIL, which torch
// has released during the op. So callers hold no lock, and threads without Python state do no look-up. Safe from any
// thread.
class Sources {
public:
    explicit Sources(const Layers& layers) : layers_(layers) {}

    std::string of(const Site&, const OpInfo&, at::ScalarType);
    // The place of this call if it errs more than each before it with the same layer, op, phase and dtype; from then on
    // it is their place. Else empty. Not for backward.
    std::string of_worst(const Site&, const OpInfo&, at::ScalarType, double error);

private:
    using Key = std::tuple<LayerId, const OpInfo*, Phase, at::ScalarType>;

    struct Known {
        std::string place;
        double error = 0;
    };

    std::string of_backward(const Site&);

    const Layers& layers_;
    std::mutex mutex_;
    std::map<Key, Known> known_;
    // The place of the layer's first forward op with these letters (see sources.cpp), or of its first one of all.
    std::map<std::pair<LayerId, std::string>, std::string> forward_;
};

}  // namespace mp::twin
