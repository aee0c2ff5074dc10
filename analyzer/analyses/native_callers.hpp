#pragma once

// Which Python code runs a template of C++ or CUDA.

#include <optional>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

// An autograd function that casts its inputs to fp32 (custom_fwd(cast_inputs=torch.float32)) and calls into this
// instantiation for half, when all of its Python callers are of that kind: a kernel that a dispatch macro instantiates
// for half then gets float. Nothing when some caller is not known.
std::optional<Note> fp32_caller(const RuleContext&, const Function&);

}  // namespace mp::lint
