#pragma once

// Where a Python program casts a whole model to fp16 whose class it does not know: `model.half()` in a
// trainer that takes any model. A model of a known class is followed to its forward (tensor_dtypes.hpp).

#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

struct ModelCast {
    const Function* function = nullptr;
    const Call* call = nullptr;
};

// Only where a fact, never a name, proves that it is a torch.nn.Module: isinstance(), or a method that
// tensors lack (parameters, train, eval, state_dict), here, in the other methods of the class, in
// callers, or where it is passed; or its annotation, where the function also runs it. Not those of
// tests and benchmarks.
std::vector<ModelCast> fp16_model_casts(const Program&, const Classes&);

// The models that a generic trainer may receive: those in the folder of the file's top-level package, or in
// the file itself when it is in no package.
std::string_view package_root(const Function&);

}  // namespace mp::lint
