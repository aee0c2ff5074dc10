#pragma once

// Results of calls of Python libraries: op, dtype, shape and class, from qualified names and operands
// alone. The table is library.txt. Everything that it does not list stays unknown.

#include <cstddef>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// Whether the first component of a dotted name is a known library: "torch".
bool is_library(std::string_view root);

// "torch.float16", "torch.half", "jax.numpy.bfloat16", "'float16'", "torch.cuda.HalfTensor"; unknown for
// every other text.
DType dtype_named(std::string_view text);

// Whether tensors have a method of this name: "half", "masked_fill_", "__add__".
bool is_tensor_method(std::string_view leaf);

// Sets op, in_place and the result, as far as name and operands determine them. The operands must be
// complete; their `call` indices refer to `function`. `default_float` is the dtype of factories without
// dtype=; pass unknown when torch.set_default_dtype may have changed it.
//
// The dtype of the result stays open where an autocast region could choose it (matmul, exp): the link stage
// decides it. For a name that is in no table, the result is left unchanged.
void complete(Call& call, const Function& function, DType default_float = DType::fp32);

// The class of the object that a library call returns: "torch.amp.GradScaler", or "torch.nn.Linear" for a
// call of the class itself; "torch.nn.Module" for torch.compile(m), "transformers.GPT2LMHeadModel" for its
// from_pretrained. Empty when the class is not known.
Symbol class_of(const Call& call);

// The same for one item of a tuple result: deepspeed.initialize(...), fabric.setup(model,
// optimizer).
Symbol class_of_item(const Call& call, std::size_t item);

// The argument whose object the call returns, as an index into call.args, or kNone: model.cuda(),
// torch.compile(m), fabric.setup(m). Its class and dtype stay, unless class_of or the result gives others.
// A wrapper has both: FSDP(net) has class FullyShardedDataParallel and returns args[0], whose forward it
// calls.
std::int32_t passes_on(const Call& call);

// Whether it is a class of such wrappers.
bool wraps_module(std::string_view qualified);

// The same for one item of a tuple result: accelerator.prepare(net, optimizer).
std::int32_t passes_on_item(const Call& call, std::size_t item);

// The shape of objects of a class: tensor, module, dtype, options (torch.device), object; `other` when the
// class is not known. For library classes; the caller resolves the bases of project classes.
Shape shape_of_class(std::string_view qualified);

// The attribute of an object whose class may be known: x.grad, x.T, x.dtype, net.weight. The shape is
// `other` when nothing is known.
struct Attribute {
    DType dtype = DType::unknown;
    Shape shape = Shape::other;
    Symbol type;  // its class, when it is an object: "torch.nn.Module" for ddp.module
};
Attribute attribute_of(const Operand& object, Symbol type, std::string_view name);

}  // namespace mp::lint::python
