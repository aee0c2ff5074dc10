#pragma once

// What calls of the Python libraries give: op, dtype, shape and class of the result, from qualified
// names and operands alone. The knowledge is in library.txt. What it does not say stays unknown.

#include <cstddef>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// Whether a first component of a dotted name is a library whose names mean something here: "torch".
bool is_library(std::string_view root);

// "torch.float16", "torch.half", "jax.numpy.bfloat16", "'float16'", "torch.cuda.HalfTensor";
// unknown for every other text.
DType dtype_named(std::string_view text);

// Whether tensors have a method of this name: "half", "masked_fill_", "__add__".
bool is_tensor_method(std::string_view leaf);

// Sets op, in_place and what the result is, as far as name and operands fix it. The operands must
// be complete; what they refer to by `call` is read in `function`. `default_float` is what
// factories give without dtype=; pass unknown where torch.set_default_dtype may have changed it.
//
// A result is left without dtype where an autocast region could choose it (matmul, exp): the link
// stage decides those. A name that is listed in no table leaves the result as it is.
void complete(Call& call, const Function& function, DType default_float = DType::fp32);

// The class of the object that a library call gives: "torch.amp.GradScaler", "torch.nn.Linear" for
// the call of the class itself; "torch.nn.Module" for torch.compile(m),
// "transformers.GPT2LMHeadModel" for its from_pretrained. Empty when it gives no object of a known
// class.
Symbol class_of(const Call& call);

// The same for one item of a tuple result: deepspeed.initialize(...), fabric.setup(model,
// optimizer).
Symbol class_of_item(const Call& call, std::size_t item);

// The argument whose object the call gives on, as an index into call.args, or kNone: model.cuda(),
// torch.compile(m), fabric.setup(m). Its class and dtype hold on unless class_of or the result say
// otherwise. A wrapper says both: FSDP(net) has class FullyShardedDataParallel and gives args[0]
// on, whose forward it calls.
std::int32_t passes_on(const Call& call);

// The same for one item of a tuple result: accelerator.prepare(net, optimizer).
std::int32_t passes_on_item(const Call& call, std::size_t item);

// How objects of a class are held: tensor, module, dtype, options (torch.device), object, or other
// when the class is not known. Classes are library names; the bases of project classes are the
// caller's.
Shape shape_of_class(std::string_view qualified);

// The attribute of an object whose class may be known: x.grad, x.T, x.dtype, net.weight. The shape
// is other when nothing is known of it.
struct Attribute {
    DType dtype = DType::unknown;
    Shape shape = Shape::other;
    Symbol type;  // its class, when it is an object: "torch.nn.Module" for ddp.module
};
Attribute attribute_of(const Operand& object, Symbol type, std::string_view name);

}  // namespace mp::lint::python
