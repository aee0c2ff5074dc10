#pragma once

#include "analyzer/analyses/finding.hpp"

namespace mp::lint {

// A report that another file has too, of the same function, is a note in all but the first of the two, if they have one
// name ("train.py", "train copy.py", "train-Copy1.py") and nearly the same functions: one is a copy of the other, or an
// older version.
void weigh_copies(const Program&, Findings&);

}  // namespace mp::lint
