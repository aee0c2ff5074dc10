#pragma once

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// Adds to `host` the functions that only the device pass has, and the facts that only the device pass has
// of shared functions (by place and kind). Indices in operands and casts are renumbered.
void merge_device_pass(Unit& host, Unit&& device);

}  // namespace mp::lint
