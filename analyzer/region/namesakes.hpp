#pragma once

// Python functions with the same qualified name in several files: two scripts train.py in different
// folders both have a train.main. Each gets its own identity. A call resolves to the one in its own
// file, else to the one in the nearest folder.

#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void separate_namesakes(std::vector<Unit>& units);

}  // namespace mp::lint
