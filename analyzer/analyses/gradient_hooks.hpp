#pragma once

// Hooks that clip the gradient of a parameter while backward runs, so before any scaler can divide it by its scale.

#include <vector>

#include "analyzer/analyses/protocol.hpp"

namespace mp::lint {

struct ClippingHook {
    const Function* function = nullptr;
    const Call* registered = nullptr;  // parameter.register_hook(...)
    Site clip;                         // in the hook, or in what it calls
    Site passed;                       // the caller that gives the module, when it is another function
    Site scaled;                       // the same function or class scales the loss, or steps with the scaler
};

// On parameters of a module that a scaler trains: in the function that registers the hook, in its callers, in the other
// methods of their class, or in a function that they give the module to.
std::vector<ClippingHook> clipping_hooks(const RuleContext&);

}  // namespace mp::lint
