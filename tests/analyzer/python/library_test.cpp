#include "analyzer/python/library/library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analyzer/facts/text.hpp"
#include "analyzer/python/library/library_tables.hpp"
#include "kernels/numerics/op.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint::python {
namespace {

// The calls of a function, written as facts, each completed in order.
Function completed(const std::string& calls, DType default_float = DType::fp32) {
    Result<Unit> unit = parse_facts("unit a.py language=python\n  func 1:1 m.f kind=python\n" + calls);
    EXPECT_TRUE(unit) << unit.error().message;
    if (!unit) return {};
    Function done = unit->functions[0];
    for (Call& call : done.calls) complete(call, done, default_float);
    return done;
}

Call last(const std::string& calls, DType default_float = DType::fp32) {
    const Function f = completed(calls, default_float);
    return f.calls.empty() ? Call{} : f.calls.back();
}

// "tensor fp16" of the last call.
std::string gives(const std::string& calls, DType default_float = DType::fp32) {
    constexpr std::string_view kShapes[] = {"scalar", "vec",   "pointer", "array",      "tensor", "options",
                                            "object", "other", "module",  "parameters", "dtype"};
    const Call call = last(calls, default_float);
    return std::string(kShapes[static_cast<std::size_t>(call.result.shape)]) + " " +
           std::string(name_of(call.result.dtype));
}

TEST(Library, FactoriesGiveTheDefaultOrWhatIsAsked) {
    EXPECT_EQ(gives("call 1:1 torch.zeros args=[constant=2]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.zeros args=[constant=2]", DType::unknown), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.zeros args=[constant=2 "
                    "{dtype fp16 constant=torch.float16 keyword=dtype}]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.zeros args=[constant=2 {other name=d keyword=dtype}]"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.zeros args=[constant=2 {constant=None keyword=dtype}]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.randint args=[constant=2]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 jax.numpy.zeros args=[constant=2 {dtype bf16 constant=jax.numpy.bfloat16}]"),
              "tensor bf16");
    EXPECT_EQ(gives("call 1:1 paddle.zeros args=[constant=2 {object constant=\"'float16'\" "
                    "keyword=dtype}]"),
              "tensor fp16");
}

// As torch 2.11 and 1.13 do: torch.normal(torch.zeros(3).bfloat16(), 1.0).dtype is torch.bfloat16.
TEST(Library, NormalHasTheDTypeOfItsFirstTensor) {
    EXPECT_EQ(gives("call 1:1 torch.normal args=[{tensor bf16} constant=1.0]"), "tensor bf16");
    EXPECT_EQ(gives("call 1:1 torch.normal args=[constant=0.0 {tensor fp16}]"), "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.normal args=[{tensor bf16 keyword=mean} {tensor fp32 keyword=std}]"),
              "tensor bf16");
    EXPECT_EQ(gives("call 1:1 torch.normal args=[constant=0 constant=1 {array}]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.normal args=[constant=0 constant=1 {array} "
                    "{dtype bf16 constant=torch.bfloat16 keyword=dtype}]"),
              "tensor bf16");
    EXPECT_EQ(gives("call 1:1 torch.normal args=[{other name=m} constant=1]"), "tensor unknown");
}

TEST(Library, ValuesHaveTheKindOfTheirNumbers) {
    EXPECT_EQ(gives("call 1:1 torch.arange args=[constant=10]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.arange args=[constant=0 constant=1 constant=0.1]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.arange args=[{other name=n}]"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.arange args=[{scalar int64 name=n}]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[constant=1.5]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[{constant=1 text=1.0}]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[{constant=1 text=1}]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[{constant=1024 text=2**10}]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[{constant=1 text=ONE}]"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.full args=[constant=3 constant=1e-8]"), "tensor fp32");
    EXPECT_EQ(gives("call 1:1 torch.full args=[{other name=shape} {constant=0 keyword=fill_value}]"),
              "tensor int64");
    EXPECT_EQ(gives("call 1:1 list kind=constructor args=[constant=1 constant=2.0]\n"
                    "call 1:2 torch.tensor args=[{object call=0}]"),
              "tensor fp32");
    EXPECT_EQ(gives("call 1:1 list kind=constructor args=[constant=1 constant=2]\n"
                    "call 1:2 torch.tensor args=[{object call=0}]"),
              "tensor int64");
}

TEST(Library, LikeAndNewFollowTheirModel) {
    EXPECT_EQ(gives("call 1:1 torch.zeros_like args=[{bf16 tensor name=x}]"), "tensor bf16");
    EXPECT_EQ(gives("call 1:1 torch.zeros_like args=[{other name=x}]"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.new_zeros kind=method args=[{fp16 tensor name=x} constant=3]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Parameter kind=constructor args=[{fp16 tensor name=x}]"),
              "tensor fp16");
}

TEST(Library, CastsOfTensorsModulesAndUnknownObjects) {
    EXPECT_EQ(gives("call 1:1 torch.Tensor.half kind=method args=[{fp32 tensor}]"), "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Module.half kind=method args=[{fp32 module}]"), "module fp16");
    EXPECT_EQ(gives("call 1:1 ?.bfloat16 kind=method args=[{other name=x}]"), "other bf16");
    const Call half = last("call 1:1 torch.Tensor.half kind=method args=[{fp32 tensor}]");
    EXPECT_FALSE(half.op.known());
}

TEST(Library, ToReadsDtypesDevicesAndOtherTensors) {
    const auto to = [](const std::string& arguments) {
        return gives("call 1:1 torch.Tensor.to kind=method args=[{fp32 tensor} " + arguments + "]");
    };
    EXPECT_EQ(to("{dtype fp16 constant=torch.float16}"), "tensor fp16");
    EXPECT_EQ(to("{dtype bf16 constant=torch.bfloat16 keyword=dtype}"), "tensor bf16");
    EXPECT_EQ(to("{object constant=\"'cuda'\"}"), "tensor fp32");
    EXPECT_EQ(to("{object constant=\"'cuda:0'\"} {dtype fp16 constant=torch.half}"), "tensor fp16");
    EXPECT_EQ(to("{other name=device}"), "tensor fp32");
    EXPECT_EQ(to("{other name=x.device}"), "tensor fp32");
    EXPECT_EQ(to("{scalar int64 name=rank}"), "tensor fp32");
    EXPECT_EQ(to("{other name=d}"), "tensor unknown");
    EXPECT_EQ(to("{bf16 tensor name=y}"), "tensor bf16");
    EXPECT_EQ(to("{other keyword=device name=d}"), "tensor fp32");
    EXPECT_EQ(to("{other name=opts keyword=**}"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.type kind=method args=[{fp32 tensor} "
                    "{object constant=\"'torch.cuda.HalfTensor'\"}]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.type_as kind=method args=[{fp32 tensor} {fp16 tensor}]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Module.to kind=method args=[{fp32 module} {object "
                    "constant=\"'cuda'\"}]"),
              "module fp32");
}

TEST(Library, OpsThatNoAutocastListTouchesKeepDtypes) {
    EXPECT_EQ(gives("call 1:1 torch.Tensor.view kind=method args=[{fp16 tensor} constant=-1]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.abs args=[{bf16 tensor}]"), "tensor bf16");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.__getitem__ kind=op args=[{fp16 tensor} constant=0]"),
              "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.add_ kind=method args=[{fp16 tensor} {fp32 tensor}]"),
              "tensor fp16");
}

TEST(Library, OpsThatARegionMayCastAreLeftOpen) {
    EXPECT_EQ(gives("call 1:1 torch.Tensor.__matmul__ kind=op args=[{fp32 tensor} {fp32 tensor}]"),
              "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.exp args=[{fp16 tensor}]"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.exp args=[{fp32 tensor}]"), "tensor fp32");
    EXPECT_EQ(last("call 1:1 torch.exp args=[{fp16 tensor}]").op.name(), "exp");
    EXPECT_EQ(gives("call 1:1 torch.nn.functional.softmax args=[{fp16 tensor} "
                    "{dtype fp32 constant=torch.float32 keyword=dtype}]"),
              "tensor fp32");
}

TEST(Library, TensorsPromoteAndPythonNumbersDoNot) {
    const auto add = [](const std::string& arguments) {
        return gives("call 1:1 torch.Tensor.__add__ kind=op args=[" + arguments + "]");
    };
    EXPECT_EQ(add("{fp16 tensor} {fp32 tensor}"), "tensor fp32");
    EXPECT_EQ(add("{fp16 tensor} constant=1.5"), "tensor fp16");
    EXPECT_EQ(add("{fp16 tensor} {scalar name=eps}"), "tensor fp16");
    EXPECT_EQ(add("{int64 tensor} constant=1"), "tensor int64");
    EXPECT_EQ(add("{int64 tensor} constant=0.5"), "tensor fp32");
    EXPECT_EQ(add("{int64 tensor} {scalar name=s}"), "tensor unknown");
    EXPECT_EQ(add("{int64 tensor} {fp16 tensor}"), "tensor fp16");
    EXPECT_EQ(add("{fp16 tensor} {bf16 tensor}"), "tensor fp32");
    EXPECT_EQ(add("{fp16 tensor} {other name=y}"), "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.tensor args=[constant=1.0]\n"
                    "call 1:2 torch.Tensor.__add__ kind=op args=[{fp16 tensor} {fp32 tensor call=0}]"),
              "tensor unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.__truediv__ kind=op args=[{int64 tensor} constant=2]"),
              "tensor fp32");
}

TEST(Library, ComparisonsIndicesAndScalars) {
    EXPECT_EQ(gives("call 1:1 torch.Tensor.__lt__ kind=op args=[{fp16 tensor} constant=0]"), "tensor bool");
    EXPECT_EQ(gives("call 1:1 torch.isnan args=[{fp16 tensor}]"), "tensor bool");
    EXPECT_EQ(gives("call 1:1 torch.argmax args=[{fp16 tensor}]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.item kind=method args=[{fp16 tensor}]"), "scalar unknown");
    EXPECT_EQ(gives("call 1:1 ?.item kind=method args=[{other name=x}]"), "scalar unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.tolist kind=method args=[{fp16 tensor}]"), "object unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.size kind=method args=[{fp16 tensor} constant=0]"),
              "scalar int64");
    EXPECT_EQ(gives("call 1:1 torch.topk args=[{fp16 tensor} constant=5]"), "other unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.max kind=method args=[{fp16 tensor}]"), "tensor fp16");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.max kind=method args=[{fp16 tensor} constant=1]"),
              "other unknown");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.sum kind=method args=[{int32 tensor}]"), "tensor int64");
    EXPECT_EQ(gives("call 1:1 torch.Tensor.sum kind=method args=[{fp32 tensor} "
                    "{dtype fp16 constant=torch.float16 keyword=dtype}]"),
              "tensor fp16");
}

TEST(Library, NumbersArraysAndStringsAreNoTensors) {
    const Call sum = last("call 1:1 ?.__add__ kind=op args=[{scalar name=a} constant=1]");
    EXPECT_FALSE(sum.op.known());
    EXPECT_EQ(sum.result.shape, Shape::scalar);
    EXPECT_EQ(gives("call 1:1 numpy.zeros args=[constant=2]"), "object unknown");
    const Call array = last("call 1:1 ?.sum kind=method args=[{object name=a}]");
    EXPECT_FALSE(array.op.known());
    EXPECT_EQ(array.result.shape, Shape::object);
    const Call open = last("call 1:1 ?.sum kind=method args=[{other name=a}]");
    EXPECT_EQ(open.op.name(), "sum");
    EXPECT_EQ(open.result.shape, Shape::other);
    EXPECT_FALSE(last("call 1:1 ?.step kind=method args=[{other name=a}]").op.known());
    EXPECT_FALSE(last("call 1:1 ?.linear kind=method args=[{other name=a}]").op.known());
}

TEST(Library, InPlaceForms) {
    EXPECT_TRUE(last("call 1:1 torch.Tensor.addmm_ kind=method args=[{fp16 tensor}]").in_place);
    EXPECT_TRUE(last("call 1:1 ?.__iadd__ kind=op args=[{other name=x} {other name=y}]").in_place);
    EXPECT_FALSE(last("call 1:1 torch.relu args=[{fp16 tensor}]").in_place);
}

TEST(Library, ModulesAndTheirParameters) {
    EXPECT_EQ(gives("call 1:1 torch.nn.Linear kind=constructor args=[constant=2 constant=2]"), "module fp32");
    EXPECT_EQ(gives("call 1:1 torch.nn.Linear kind=constructor args=[constant=2 constant=2 "
                    "{dtype bf16 constant=torch.bfloat16 keyword=dtype}]"),
              "module bf16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Sequential kind=constructor args=[{fp32 module} {module}]"),
              "module unknown");
    EXPECT_EQ(gives("call 1:1 torch.nn.Sequential kind=constructor args=[{fp16 module} {fp16 module}]"),
              "module fp16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Module.parameters kind=method args=[{fp16 module}]"),
              "parameters fp16");
    EXPECT_EQ(gives("call 1:1 torch.nn.Module.cuda kind=method args=[{fp16 module}]"), "module fp16");
    EXPECT_EQ(gives("call 1:1 torchvision.models.resnet50"), "module fp32");
    const Call forward =
        last("call 1:1 torch.nn.Linear.forward kind=method args=[{fp32 module} {fp32 tensor}]");
    EXPECT_EQ(forward.op.name(), "linear");
    EXPECT_EQ(forward.result.dtype, DType::unknown);
    EXPECT_EQ(gives("call 1:1 torch.nn.MaxPool2d.forward kind=method args=[{fp32 module} {fp16 tensor}]"),
              "tensor fp16");
}

TEST(Library, CheckpointsHaveTheDtypeThatIsAsked) {
    const std::string load = "call 1:1 transformers.AutoModelForCausalLM.from_pretrained ";
    EXPECT_EQ(gives(load + "args=[{object constant=\"'gpt2'\"} "
                           "{dtype fp16 constant=torch.float16 keyword=torch_dtype}]"),
              "module fp16");
    EXPECT_EQ(gives(load + "args=[{object constant=\"'gpt2'\"}]"), "module unknown");
    EXPECT_EQ(gives(load + "args=[{object constant=\"'auto'\" keyword=torch_dtype}]"), "module unknown");
    EXPECT_EQ(gives("call 1:1 transformers.AutoTokenizer.from_pretrained args=[{object "
                    "constant=\"'gpt2'\"}]"),
              "object unknown");
}

std::string class_given(const std::string& call) { return std::string(class_of(last(call)).str()); }

TEST(Library, ClassesOfObjects) {
    EXPECT_EQ(class_given("call 1:1 torch.amp.GradScaler"), "torch.amp.GradScaler");
    EXPECT_EQ(class_given("call 1:1 torch.optim.AdamW"), "torch.optim.AdamW");
    EXPECT_EQ(class_given("call 1:1 torch.cuda.amp.autocast"), "torch.cuda.amp.autocast");
    EXPECT_EQ(class_given("call 1:1 transformers.GPT2LMHeadModel.from_pretrained"),
              "transformers.GPT2LMHeadModel");
    EXPECT_EQ(class_given("call 1:1 pytorch_lightning.LightningModule.optimizers kind=method"),
              "torch.optim.Optimizer");
    EXPECT_EQ(class_given("call 1:1 torch.zeros"), "");
    EXPECT_EQ(class_given("call 1:1 mylib.Thing"), "");
    EXPECT_EQ(class_given("call 1:1 ?.Thing"), "");
    EXPECT_EQ(shape_of_class("torch.amp.GradScaler"), Shape::object);
    EXPECT_EQ(shape_of_class("torch.nn.Conv2d"), Shape::module);
    EXPECT_EQ(shape_of_class("torch.nn.Parameter"), Shape::tensor);
    EXPECT_EQ(shape_of_class("torch.distributed.fsdp.FullyShardedDataParallel"), Shape::module);
    EXPECT_EQ(shape_of_class("pkg.Net"), Shape::other);
}

TEST(Library, WrappersAndEnginesPassObjectsOn) {
    const Call prepare = last(
        "call 1:1 accelerate.Accelerator.prepare kind=method "
        "args=[{object name=a} {fp32 module name=m} {object name=o}]");
    EXPECT_EQ(passes_on(prepare), kNone);
    EXPECT_EQ(passes_on_item(prepare, 0), 1);
    EXPECT_EQ(passes_on_item(prepare, 1), 2);
    EXPECT_EQ(passes_on_item(prepare, 2), kNone);
    EXPECT_EQ(passes_on(last("call 1:1 accelerate.accelerator.Accelerator.prepare kind=method "
                             "args=[{object name=a} {fp32 module name=m}]")),
              1);
    const Call engine = last("call 1:1 deepspeed.initialize args=[{module name=m keyword=model}]");
    EXPECT_EQ(class_of_item(engine, 0).str(), "deepspeed.DeepSpeedEngine");
    EXPECT_EQ(class_of_item(engine, 3).str(), "");
    EXPECT_EQ(passes_on(last("call 1:1 torch.compile args=[{fp32 module name=m}]")), 0);
    const Call wrapped = last(
        "call 1:1 torch.nn.parallel.DistributedDataParallel kind=constructor "
        "args=[{bf16 module name=m}]");
    EXPECT_EQ(passes_on(wrapped), 0);
    EXPECT_EQ(wrapped.result.dtype, DType::bf16);
    EXPECT_EQ(passes_on(last("call 1:1 torch.nn.Module.eval kind=method args=[{fp32 module}]")), 0);
    EXPECT_EQ(passes_on(last("call 1:1 torch.nn.Module.state_dict kind=method args=[{fp32 module}]")), kNone);
    EXPECT_EQ(passes_on(last("call 1:1 model.Net.cuda kind=method args=[{object name=n}]\n")), 0);
    EXPECT_EQ(passes_on(last("call 1:1 model.Net.fit kind=method args=[{object name=n}]\n")), kNone);
    EXPECT_EQ(passes_on_item(last("call 1:1 apex.amp.initialize args=[{module name=m} {object name=o}]"), 1),
              1);
}

TEST(Library, DtypesByName) {
    EXPECT_EQ(dtype_named("torch.float16"), DType::fp16);
    EXPECT_EQ(dtype_named("torch.half"), DType::fp16);
    EXPECT_EQ(dtype_named("jax.numpy.bfloat16"), DType::bf16);
    EXPECT_EQ(dtype_named("'float16'"), DType::fp16);
    EXPECT_EQ(dtype_named("torch.float8_e4m3fn"), DType::e4m3);
    EXPECT_EQ(dtype_named("torch.float"), DType::fp32);
    EXPECT_EQ(dtype_named("half"), DType::unknown);
    EXPECT_EQ(dtype_named("mylib.half"), DType::unknown);
    EXPECT_EQ(dtype_named("'16-mixed'"), DType::unknown);
    EXPECT_EQ(dtype_named(""), DType::unknown);
}

Operand operand(Shape shape, DType dtype) {
    Operand o;
    o.shape = shape;
    o.dtype = dtype;
    return o;
}

TEST(Library, Attributes) {
    const Operand x = operand(Shape::tensor, DType::fp16);
    EXPECT_EQ(attribute_of(x, {}, "grad").dtype, DType::fp16);
    EXPECT_EQ(attribute_of(x, {}, "dtype").shape, Shape::dtype);
    EXPECT_EQ(attribute_of(x, {}, "shape").shape, Shape::object);
    EXPECT_EQ(attribute_of(x, {}, "nothing").shape, Shape::other);
    const Operand unknown = operand(Shape::other, DType::unknown);
    EXPECT_EQ(attribute_of(unknown, {}, "grad").shape, Shape::other);
    EXPECT_EQ(attribute_of(unknown, Symbol("torch.finfo"), "min").shape, Shape::scalar);
    const Operand net = operand(Shape::module, DType::bf16);
    EXPECT_EQ(attribute_of(net, Symbol("torch.nn.Linear"), "weight").dtype, DType::bf16);
}

TEST(Library, LibrariesAndTensorMethods) {
    EXPECT_TRUE(is_library("torch"));
    EXPECT_TRUE(is_library("jax"));
    EXPECT_FALSE(is_library("os"));
    EXPECT_TRUE(is_tensor_method("half"));
    EXPECT_TRUE(is_tensor_method("masked_fill_"));
    EXPECT_TRUE(is_tensor_method("__add__"));
    EXPECT_FALSE(is_tensor_method("linear"));
    EXPECT_FALSE(is_tensor_method("step"));
}

TEST(Library, TheTableNamesRealDTypes) {
    for (const auto& [name, answer] : names_in("casts")) EXPECT_TRUE(dtype_from_name(answer)) << answer;
    for (const auto& [name, answer] : names_in("dtypes")) EXPECT_TRUE(dtype_from_name(answer)) << answer;
    EXPECT_FALSE(names_in("libraries").empty());
}

// Where library.txt and ops.txt both have the result of a name, they agree.
TEST(Library, TheTablesAgreeOnResults) {
    const std::map<std::string_view, std::vector<Trait>> allowed{
        {"floats", {}},  {"integers", {Trait::indices}}, {"values", {}},
        {"tensors", {}}, {"like", {Trait::keeps}},       {"drawn", {Trait::keeps}},
        {"counts", {}},  {"scalars", {Trait::truths}},   {"objects", {Trait::several}},
    };
    for (const auto& [section, agree] : allowed) {
        EXPECT_FALSE(names_in(section).empty()) << section;
        for (const auto& [name, answer] : names_in(section)) {
            const Traits traits = traits_of(op_from_spelling(name));
            for (const Trait result : {Trait::keeps, Trait::promotes, Trait::sums_integers, Trait::truths,
                                       Trait::indices, Trait::extremes, Trait::several})
                EXPECT_TRUE(!traits.has(result) || std::ranges::count(agree, result) > 0)
                    << name << ": [" << section << "] and " << name_of(result);
        }
    }
}

}  // namespace
}  // namespace mp::lint::python
