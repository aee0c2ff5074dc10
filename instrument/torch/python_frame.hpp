#pragma once

#include <string>

#include "instrument/torch/layers.hpp"
#include "instrument/torch/op_info.hpp"

namespace mp::twin {

// Where the program asks for an op: "train.py:88" of the innermost Python frame that belongs to neither torch
// nor us; for a backward op the place of the forward. Asked once per (layer, op, phase) and remembered, so
// that the interpreter is entered a few hundred times a run; empty when there is no Python or no such frame.
//
// It takes the GIL, which torch has let go of for the time of the op and takes again right after; threads
// without Python state are never made to.
std::string source_of(const Site&, const OpInfo&);

}  // namespace mp::twin
