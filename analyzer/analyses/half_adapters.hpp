#pragma once

// Adapters (peft) whose weights are half: the module was cast or loaded so before it got them, or their layers are
// cast.

#include <string>
#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

struct HalfAdapter {
    const Function* function = nullptr;
    SourceSpan at;
    std::string what;  // "the adapter is made in bf16"
    DType dtype = DType::unknown;
    std::vector<Note> chain;
    bool by_option = false;  // a value that no text of the project gives the option makes it so
};

// Those that are trained, outside of tests.
std::vector<HalfAdapter> half_adapters(const RuleContext&);

}  // namespace mp::lint
