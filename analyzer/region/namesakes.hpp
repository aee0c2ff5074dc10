#pragma once

// Python functions of one qualified name in several files: two scripts train.py in different folders
// both have a train.main. Each gets an identity of its own, and a call leads to the one that its file
// means: its own, else the one in the nearest folder.

#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void separate_namesakes(std::vector<Unit>& units);

}  // namespace mp::lint
