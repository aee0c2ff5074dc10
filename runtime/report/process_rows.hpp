#pragma once

#include <vector>

#include "runtime/fold/run_model.hpp"

// What the text and the JSON report both need of the tables of each process.

namespace mp::trace {

// Empty ones where the model was folded without.
const ProcessTables& tables_of(const RankFacts&);

struct StepPlace {
    const RankFacts* process = nullptr;
    const StepRow* row = nullptr;
};
// By step, then in the order of the model's processes and of their files.
std::vector<StepPlace> steps_of(const RunModel&);

// shadowed / (shadowed + unshadowed); negative: nothing to divide by.
double fraction_of_ops(const Coverage&);
double fraction_of_bytes(const Coverage&);

}  // namespace mp::trace
