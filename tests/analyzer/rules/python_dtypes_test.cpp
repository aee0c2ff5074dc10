// Dtypes of tensors in Python programs.

#include "analyzer/analyses/tensor_dtypes.hpp"
#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

// The dtype of the first argument of the last call of `function`; "?" behind it when not proven.
std::string last(const std::vector<std::string>& units, std::string_view function) {
    const Program program = linked(units);
    static const Policies policies = Policies::load("").value();
    const RuleContext context{.program = program, .policies = policies};
    const Function& f = function_named(program, function);
    TensorDTypes dtypes(context);
    const TensorDType found = dtypes.of(f, f.calls.back().args.at(0));
    return std::string(name_of(found.dtype)) + (found.dtype == DType::unknown || found.proven ? "" : "?");
}

// The dtype of an argument in the function, asked by one rule after another rule asked for the one in `before`.
std::string asked_after(const std::string& unit, std::string_view before, std::string_view function) {
    const Program program = linked({unit});
    static const Policies policies = Policies::load("").value();
    const RuleContext context{.program = program, .policies = policies};
    DType found = DType::unknown;
    for (const std::string_view name : {before, function}) {
        if (name.empty()) continue;
        const Function& asked = function_named(program, name);
        found = TensorDTypes(context).of(asked, asked.calls.back().args.at(0)).dtype;
    }
    return std::string(name_of(found));
}

std::string f(std::string_view lines) {
    return "unit a.py language=python\n  func 1:1 a.f kind=python params=[{other name=x} {other "
           "name=n}]\n" +
           std::string(lines);
}

constexpr std::string_view kHalf =
    "    call 2:3 ?.half kind=method op=half args=[{other param=0 name=x}] result.dtype=fp16 "
    "result.shape=other\n";

std::string after_half(std::string_view lines) {
    return last({f(std::string(kHalf) + std::string(lines))}, "a.f");
}

TEST(PythonDTypes, OperandsOfUnknownShapeAreFollowedLikeTensors) {
    EXPECT_EQ(after_half("    call 3:3 ?.relu kind=method op=relu args=[{other call=0}]\n"
                         "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n"),
              "fp16");
}

// f() and g() pass their parameter to each other.
TEST(PythonDTypes, AnswersInsideRecursionDoNotDependOnWhatOtherRulesAsked) {
    const std::string unit =
        "unit a.py language=python\n"
        "  func 1:1 a.f kind=python usr=f params=[{other name=x}]\n"
        "    call 2:3 a.g callee=g args=[{other param=0 name=x}]\n"
        "  func 4:1 a.g kind=python usr=g params=[{other name=y}]\n"
        "    call 5:3 a.f callee=f args=[{other param=0 name=y}]\n"
        "  func 7:1 a.main kind=python usr=main\n"
        "    call 8:3 a.f callee=f args=[{fp16 tensor}]\n"
        "    call 9:3 a.f callee=f args=[{fp32 tensor}]\n";
    EXPECT_EQ(asked_after(unit, "", "a.g"), "fp16");
    EXPECT_EQ(asked_after(unit, "a.f", "a.g"), "fp16");
}

// Each function passes its parameter to the next one.
TEST(PythonDTypes, DepthOfAnAnswerDoesNotDependOnWhatOtherRulesAsked) {
    std::string unit =
        "unit a.py language=python\n  func 1:1 a.main kind=python usr=main\n"
        "    call 1:3 a.f0 callee=f0 args=[{fp16 tensor}]\n    call 1:9 a.f0 callee=f0 args=[{fp32 "
        "tensor}]\n";
    for (int i = 0; i < 300; ++i) {
        const std::string own = std::to_string(i), next = std::to_string(i + 1);
        unit += "  func " + std::to_string(i + 2) + ":1 a.f" + own + " kind=python usr=f" + own +
                " params=[{other name=x}]\n    call " + std::to_string(i + 2) + ":3 a.f" + next +
                " callee=f" + next + " args=[{other param=0 name=x}]\n";
    }
    EXPECT_EQ(asked_after(unit, "", "a.f200"), "fp16");
    EXPECT_EQ(asked_after(unit, "", "a.f299"), "unknown");
    EXPECT_EQ(asked_after(unit, "a.f200", "a.f299"), "unknown");
}

TEST(PythonDTypes, NumbersDoNotWiden) {
    EXPECT_EQ(after_half("    call 3:3 ?.__mul__ kind=op op=mul args=[{other call=0} {constant=2.5}]\n"
                         "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n"),
              "fp16");
}

TEST(PythonDTypes, AnUnknownOperandOfABinaryOpMakesItUnknown) {
    EXPECT_EQ(after_half("    call 3:3 ?.__mul__ kind=op op=mul args=[{other call=0} {other "
                         "param=1}]\n"
                         "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n"),
              "unknown");
    EXPECT_EQ(after_half("    call 3:3 ?.view kind=method op=view args=[{other call=0} {other "
                         "param=1}]\n"
                         "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n"),
              "fp16")
        << "a size is no input";
}

TEST(PythonDTypes, ListsAreTheirItems) {
    const std::string cat =
        "    call 4:3 torch.cat op=cat args=[{other call=1}]\n"
        "    call 5:3 ?.exp kind=method op=exp args=[{other call=2}]\n";
    EXPECT_EQ(after_half("    call 3:3 list kind=constructor args=[{other call=0} {other call=0}]\n" + cat),
              "fp16");
    EXPECT_EQ(after_half("    call 3:3 list kind=constructor args=[{other call=0} {other param=1}]\n" + cat),
              "unknown");
}

TEST(PythonDTypes, FactoriesOfATensorTakeItsDtypeUnlessTold) {
    const std::string exp = "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n";
    EXPECT_EQ(after_half("    call 3:3 ?.new_zeros kind=method args=[{other call=0} {constant=3}]\n" + exp),
              "fp16");
    EXPECT_EQ(after_half("    call 3:3 torch.zeros_like args=[{other call=0}]\n" + exp), "fp16");
    EXPECT_EQ(after_half("    call 3:3 torch.zeros_like args=[{other call=0} {other name=d "
                         "keyword=dtype}]\n" +
                         exp),
              "unknown");
}

TEST(PythonDTypes, InPlaceOpsKeepTheirReceivers) {
    EXPECT_EQ(after_half("    call 3:3 ?.__iadd__ kind=op op=add in_place args=[{other call=0} {fp32 "
                         "tensor}]\n"
                         "    call 4:3 ?.exp kind=method op=exp args=[{other call=1}]\n"),
              "fp16");
}

TEST(PythonDTypes, RegionsCastByTheListOfTheirDevice) {
    const auto in = [](std::string_view device, std::string_view op) {
        const std::string name(op);
        return last({f("    call 2:6 torch.autocast kind=constructor\n"
                       "    call 2:6 torch.autocast.__enter__ kind=method args=[{object call=0} "
                       "{object constant=\"'" +
                       std::string(device) + "'\"}]\n    call 3:3 torch." + name + " op=" + name +
                       " args=[{other param=0} {other param=1}]\n"
                       "    call 4:3 ?.std kind=method op=std args=[{other call=2}]\n")},
                    "a.f");
    };
    EXPECT_EQ(in("cuda", "matmul"), "fp16");
    EXPECT_EQ(in("cpu", "matmul"), "bf16");
    EXPECT_EQ(in("cuda", "softmax"), "fp32");
    EXPECT_EQ(in("cpu", "softmax"), "unknown");
    EXPECT_EQ(in("hpu", "softmax"), "bf16");
    EXPECT_EQ(in("xla", "relu"), "bf16");
}

TEST(PythonDTypes, KeywordsFindTheirParameters) {
    const std::string callee =
        "  func 9:1 a.g kind=python params=[{other name=p} {other name=q}]\n"
        "    call 9:9 ?.exp kind=method op=exp args=[{other param=1}]\n";
    EXPECT_EQ(last({f("    call 2:3 a.g callee=a.g args=[{fp32 tensor keyword=p} {fp16 tensor "
                      "keyword=q}]\n") +
                    callee},
                   "a.g"),
              "fp16");
    EXPECT_EQ(
        last({f("    call 2:3 a.g callee=a.g args=[{fp16 tensor} {other keyword=**}]\n") + callee}, "a.g"),
        "unknown");
}

TEST(PythonDTypes, AModuleCastAsAWholeReachesItsForward) {
    const auto with = [](std::string_view method, std::string_view dtype) {
        const std::string cast = "torch.nn.Module." + std::string(method);
        return last({"unit a.py language=python\n  func 1:1 a.main kind=python\n"
                     "    call 2:3 a.Net kind=constructor callee=a.Net.__init__\n"
                     "    call 2:9 " +
                     cast + " kind=method args=[{module call=0}] result.dtype=" + std::string(dtype) +
                     " result.shape=module\n"
                     "    call 3:3 a.Net.forward kind=method callee=a.Net.forward args=[{module "
                     "call=1} {other name=x}]\n"
                     "  func 9:1 a.Net.forward kind=python parent_class=a.Net "
                     "bases=[torch.nn.Module] params=[{module name=self} {other name=x}]\n"
                     "    call 9:3 torch.nn.Linear.forward kind=method op=linear args=[{module "
                     "name=self.fc} {other param=1}]\n"
                     "    call 9:9 ?.exp kind=method op=exp args=[{other call=0}]\n"},
                    "a.Net.forward");
    };
    EXPECT_EQ(with("half", "fp16"), "fp16?");
    EXPECT_EQ(with("eval", "unknown"), "unknown");
}

TEST(PythonDTypes, ObjectsOfOtherFilesAreResolved) {
    // `net` is made in main, passed to step, and called there.
    const std::vector<std::string> units{
        "unit t.py language=python\n"
        "  func 1:1 t.main kind=python\n"
        "    call 2:3 m.Net kind=constructor callee=m.Net.__init__\n"
        "    call 3:3 t.step callee=t.step args=[{object call=0} {fp16 tensor}]\n"
        "  func 5:1 t.step kind=python params=[{other name=net} {other name=x}]\n"
        "    call 6:3 ?.__call__ kind=method args=[{other param=0} {other param=1}]\n",
        "unit m.py language=python\n"
        "  func 1:1 m.Net.forward kind=python parent_class=m.Net bases=[torch.nn.Module] "
        "params=[{module name=self} {other name=x}]\n"
        "    call 2:3 ?.exp kind=method op=exp args=[{other param=1}]\n"};
    EXPECT_EQ(last(units, "m.Net.forward"), "fp16");
}

}  // namespace
}  // namespace mp::lint
