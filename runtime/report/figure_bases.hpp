#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/finding.hpp"

namespace mp::trace {

// A kind of figure in the report of a program without torch, what it rests on, and of how much it was taken.
struct FigureBasis {
    Basis basis = Basis::exact;
    std::string what;
    std::uint64_t count = 0;
    std::string unit;  // "call": it gets an s
};

// Those that the run has, exact ones first. Empty: the program uses torch.
std::vector<FigureBasis> figures_of(const RunModel&);

}  // namespace mp::trace
