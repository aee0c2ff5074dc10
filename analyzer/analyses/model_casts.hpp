#pragma once

// Where a Python program casts a whole model to half: one whose class it does not know (`model.half()` in a trainer
// that takes any model), or one that contains objects of a class. A model of a known class is also followed to its
// forward (tensor_dtypes.hpp).

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/facts/model.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {

struct ModelCast {
    const Function* function = nullptr;
    const Call* call = nullptr;
};

// Only where a fact, never a name, proves that it is a torch.nn.Module: isinstance(), or a method that
// tensors lack (parameters, train, eval, state_dict), here, in the other methods of the class, in
// callers, or where it is passed; or its annotation, where the function also runs it. Not those of
// tests and benchmarks.
std::vector<ModelCast> fp16_model_casts(const RuleContext&);

// Which modules the program itself makes half. A buffer of another module stays fp32 unless a caller outside the
// program casts it.
class HalfModels {
public:
    explicit HalfModels(const RuleContext&);

    // Where a module becomes half that contains an object of the method's class, or where an engine of the same
    // package keeps all weights in half. A cast of a module whose class is not known says nothing about this one.
    // Empty: nowhere in the program.
    std::vector<Note> of(const Function& method) const;
    // The dtype that a module which contains an object of the method's class is cast to, not by an engine.
    TensorDType dtype_of(const Function& method) const;

private:
    struct Cast {
        const Function* function = nullptr;
        SourceSpan at;
        DType dtype = DType::unknown;
        Symbol of_class;  // of the module; empty: an engine, which casts any
    };
    std::unordered_set<Symbol> parts_of(Symbol whole) const;

    const Classes& classes_;
    std::vector<Cast> casts_;
    std::unordered_map<Symbol, std::unordered_set<Symbol>>
        parts_;  // of each class that is cast, itself included
};

// Found at the first call for a context and kept with it.
const HalfModels& half_models_of(const RuleContext&);

// The models that a generic trainer may receive: those in the folder of the file's top-level package, or in
// the file itself when it is in no package.
std::string_view package_root(const Function&);

}  // namespace mp::lint
