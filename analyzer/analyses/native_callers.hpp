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
    possible,  // the dtype is chosen at run time, and the program makes half values or has no Python that could
    tried,     // only a test, a benchmark or a try-out passes half, in C++ or in Python
    offered,  // compiled for half too, while the program calls the wide variant alone, or no function of the name
    unpassed,  // chosen at run time; autograd functions alone run it, and none is known to get half or is used, or a
               // module offers it, and Python does not call it
    unmade,  // chosen at run time, and the Python code of the program makes no half value
    fp32,  // all of its Python callers cast their inputs to fp32 (custom_fwd(cast_inputs=torch.float32)), or pass a
           // parameter of a module that nothing casts
};

struct HalfEvidence {
    HalfRuns runs = HalfRuns::proven;
    std::optional<Note> note{};  // where it is decided
};

HalfEvidence half_evidence(const RuleContext&, const Function&);

// An index for half_evidence(), kept with the context.
class NativeCode;

}  // namespace mp::lint
