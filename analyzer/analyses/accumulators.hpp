#pragma once

// Sums that Python code keeps in half: what MP401 and MP410 share.

#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// A kernel that is given experts adds up their results for a token: those of top-k, which are few.
bool is_given_experts(const Function&);

struct Accumulator {
    const Function* function = nullptr;
    const Accumulation* fact = nullptr;
    DType dtype = DType::unknown;    // of the total, low precision
    bool proven = false;             // on every known path
    bool certain = false;            // each round of its loops adds, and nothing else changes the total
    bool over_steps = false;         // a total over steps or batches, not part of a computation
    const Operand* added = nullptr;  // the addend
    std::vector<Note> notes;         // why the total has this dtype
};

// Those of more terms than a few. A value that is computed from the total itself (x = x + block(x)) is
// no sum.
std::vector<Accumulator> python_accumulators(const RuleContext&);

// Half losses that a loop collects in a list and one op then adds: torch.stack(losses).mean(),
// sum(losses).
struct CollectedTotal {
    const Function* function = nullptr;
    const Call* call = nullptr;  // that adds
    Symbol list;                 // empty: it has no name
    DType dtype = DType::unknown;
    bool one_by_one = false;  // sum(losses): every addition rounds
    std::vector<Note> notes;
};
std::vector<CollectedTotal> collected_totals(const RuleContext&);

}  // namespace mp::lint
