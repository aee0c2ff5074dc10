#pragma once

// Facts of a snippet, parsed in memory: no file, no toolkit, no standard library. The snippet may
// use the small system headers below (half types and intrinsics, tensors, a few std names).

#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

enum class Snippet { cpp, cuda };

Unit facts_of(const std::string& code, Snippet = Snippet::cuda);

// By display name; a test fails when there is none.
const Function& function_named(const Unit&, const std::string& display);

// "fp32->fp16 implicit init 'x' -> h", one line per fact, in order.
std::vector<std::string> casts(const Function&);
// "constructor Guard::Guard(on)", one line per fact, in order; arguments by name, constant or text.
std::vector<std::string> calls(const Function&);

}  // namespace mp::lint
