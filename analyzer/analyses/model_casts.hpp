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

// Only values that facts prove to be a torch.nn.Module; names are no evidence. Facts are isinstance(), or a
// method that tensors lack (parameters, train, eval, state_dict), here, in other methods of the class, in
// callers, or in callees; or an annotation, if the function also runs the module. Tests and benchmarks are
// excluded.
std::vector<ModelCast> fp16_model_casts(const Program&, const Classes&);

// The models that a generic trainer may receive: those in the folder of the file's top-level package, or in
// the file itself when it is in no package.
std::string_view package_root(const Function&);

}  // namespace mp::lint
