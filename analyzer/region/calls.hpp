#pragma once

#include <cstddef>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

bool is_python(const Function&);

// "at::Tensor::sum", "torch.Tensor.sum" -> "sum"; the text itself when it has no scope.
std::string_view leaf(std::string_view qualified);

// "linear" for torch.nn.Linear: the op that the forward of a library's layer is; unknown for other classes.
Op op_of_layer(Symbol class_name);

// Whether it is this method of a library's class, in whichever module:
// "pytorch_lightning.core.LightningModule.optimizers" is "lightning.LightningModule.optimizers".
bool is_library_method(std::string_view qualified, std::string_view method);

// `f.__enter__` and `f.__exit__`, where `f` is a context manager class of a library or a generator.
bool is_enter(const Call&);
bool is_exit(const Call&);

// The arguments that a call passes for the parameters of a function it reaches. nullptr when the
// parameter has its default, or when unpacked arguments (*args) hide the argument.
class Passed {
public:
    Passed(const Call&, const Function& callee);
    const Operand* operator[](std::size_t param) const;

private:
    const Operand* in_python(Symbol name, std::ptrdiff_t first) const;

    const Call& call_;
    const Function& callee_;
    bool python_ = false;
    std::ptrdiff_t before_ = 0;  // number of arguments before the one for parameter 0
};
const Operand* argument_for(const Call&, const Function& callee, std::int32_t param);

// The call whose result the operand is; nullptr when it is not the result of a call.
const Call* call_of(const Function&, const Operand&);

// The item at a constant index that `a, b = pair` and `pair[1]` read in Python.
struct Item {
    const Operand* held = nullptr;  // nullptr: the call reads no such item
    std::size_t at = 0;
};
Item item_of(const Call&);
// The item `at` of a list or tuple display; nullptr when the call does not make one, or it is
// shorter.
const Operand* item_of_display(const Call&, std::size_t at);

}  // namespace mp::lint
