#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// A class of Python that nothing makes or hands on, nor a class that is derived from it; its name is in no value but
// `__all__`. Tests, benchmarks and scripts that measure do not count.
bool is_unused_class(const RuleContext&, Symbol name);

}  // namespace mp::lint
