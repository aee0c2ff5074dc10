#pragma once

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// Adds to `host` what only the device pass saw: whole functions, and facts of functions both passes saw
// (by place and kind). What an operand or a cast refers to by index is renumbered.
void merge_device_pass(Unit& host, Unit&& device);

}  // namespace mp::lint
