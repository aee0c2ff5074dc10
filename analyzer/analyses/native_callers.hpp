#pragma once

// Whether code of C++ or CUDA runs in half precision: what its callers, in C++ and in Python, show.

#include <cstdint>
#include <optional>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

// A template that a dispatch macro or a list of explicit instantiations makes for half beside float may never run in
// half.
enum class HalfRuns : std::uint8_t {
    proven,    // the code has no wider variant, its caller takes this one alone, or Python passes half
    possible,  // the dtype is chosen at run time, and the run has no Python that could show which
    unshown,  // no Python is known to pass half, only a test or a try-out does, or the wide variant alone is called
};

struct HalfEvidence {
    HalfRuns runs = HalfRuns::proven;
    std::optional<Note> note{};  // where it is decided
};

HalfEvidence half_evidence(const RuleContext&, const Function&);

// An index for half_evidence(), kept with the context.
class NativeCode;

}  // namespace mp::lint
