#pragma once

// Products of positions and frequencies, whose cosine and sine a program takes.

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// The call cos(), sin() or polar() in the function that takes what the product gives; nullptr: there is none.
const Call* angle_taken(const Function&, const Call& product);

}  // namespace mp::lint
