#pragma once

// Functions of C++ and CUDA and classes of Python that nothing in the program uses.

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Neither main(), nor Python, nor what has C linkage, nor a method or operator reaches the function, and nothing passes
// it on as a value. Only in a program that has a main() or offers functions to Python, because a library is run by
// others, and all of whose units parsed.
bool is_unreached(const RuleContext&, const Function&);

// A class of Python that nothing makes or hands on, nor a class that is derived from it; its name is in no value but
// `__all__`.
bool is_unused_class(const RuleContext&, Symbol name);

// An index for is_unreached(), kept with the context.
class NativeRoots;

}  // namespace mp::lint
