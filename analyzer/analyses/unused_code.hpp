#pragma once

// Code that nothing in the program calls, names or imports.

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Nothing calls the function or method, or makes its class. Of a script its own statements show it; of other files only
// a run over a whole project; of a package what begins with `_`, because others may call the rest.
bool is_never_called(const RuleContext&, const Function&);

// Code takes the function as a value: {"a": run}, &run. A call of it may not be seen then.
bool is_taken(const Program&, const Function&);

// Whether a call has this name, or code takes a value of this name: main(), Thread(target=worker), {"sft": train_sft}.
// Calls that are known to run another function of the name than the entity do not count.
bool is_named(const Program&, std::string_view name, Symbol entity = {});

}  // namespace mp::lint
