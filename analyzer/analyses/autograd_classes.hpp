#pragma once

// Hand-written autograd functions: the forward and backward of a subclass of
// torch.autograd.Function, in Python and in C++.

#include <vector>

#include "analyzer/region/program.hpp"

namespace mp::lint {

struct AutogradClass {
    Symbol name;
    const Function* forward = nullptr;
    const Function* backward = nullptr;
    bool has_setup_context = false;
};

std::vector<AutogradClass> autograd_classes(const Program&);

// In Python: a method of a class that is derived from torch.autograd.Function itself.
bool is_of_autograd_function(const Function&);

// A decorator of this name, by whatever module: "custom_fwd".
bool has_decorator(const Function&, std::string_view name);

}  // namespace mp::lint
