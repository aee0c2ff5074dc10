// What names of one Python file mean in the whole program.

#include <algorithm>

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

std::string caller(std::string_view call, std::string_view module = "t") {
    const std::string m(module);
    return "unit " + m + ".py language=python\n  func 1:1 " + m + ".<module> kind=python\n" + "  func 2:1 " +
           m + ".f kind=python params=[{other name=x}]\n    call 3:3 " + std::string(call) + "\n";
}

// "name callee" of the call.
std::string meaning(const std::vector<std::string>& units, std::string_view function = "t.f") {
    const Program p = linked(units);
    const Call& c = function_named(p, function).calls.back();
    return std::string(c.name.str()) + " " + std::string(c.callee.str());
}

const std::string kLosses =
    "unit losses.py language=python\n  func 1:1 pkg.losses.<module> kind=python\n"
    "  func 2:1 pkg.losses.kl kind=python\n"
    "  func 5:1 pkg.losses.Base.loss kind=python parent_class=pkg.losses.Base "
    "bases=[torch.nn.Module] params=[{module name=self}]\n"
    "  func 9:1 pkg.losses.Net.forward kind=python parent_class=pkg.losses.Net "
    "bases=[pkg.losses.Base] params=[{module name=self} {other name=x}]\n";

std::string exports(std::string_view types) {
    return "unit init.py language=python\n  func 1:1 pkg.<module> kind=python\n" + std::string(types);
}

TEST(PythonNames, ReExportsAreFollowed) {
    const std::string init = exports(
        "    type 1:1 pkg.losses.kl alias=pkg.kl\n"
        "    type 2:1 torch.cuda.amp.autocast alias=pkg.ac\n");
    EXPECT_EQ(meaning({kLosses, init, caller("pkg.kl callee=pkg.kl")}), "pkg.losses.kl pkg.losses.kl");
    EXPECT_EQ(meaning({kLosses, init, caller("pkg.ac.__enter__ kind=method callee=pkg.ac.__enter__")}),
              "torch.cuda.amp.autocast.__enter__ ");
}

// The facts of `settings.py`, and of `t.f`, which makes this call.
const std::string kSettings =
    "unit settings.py language=python\n  func 1:1 settings.<module> kind=python\n"
    "    call 2:1 dict kind=constructor args=[{bf16 dtype keyword=bf16} {fp16 dtype keyword=fp16}] "
    "result.shape=object\n"
    "    define 1:1 settings.HALF value.dtype=fp16 value.shape=dtype\n"
    "    define 2:1 settings.DTYPES value.shape=object value.call=0\n"
    "    define 3:1 settings.AMP value.constant=true\n"
    "  func 5:1 settings.Config.<class> kind=python parent_class=settings.Config\n"
    "    define 6:1 settings.Config.eps value.constant=1e-08 value.assumed=true\n";

Operand last_argument(const std::string& call) {
    const Program p = linked({kSettings, caller(call)});
    return function_named(p, "t.f").calls.back().args.back();
}

TEST(PythonValues, AnImportedConstantIsWhatItsModuleBinds) {
    EXPECT_EQ(last_argument("?.to kind=method args=[{other param=0} {other refers=settings.HALF}]").dtype,
              DType::fp16);
    EXPECT_EQ(last_argument("g args=[{other refers=settings.AMP}]").constant.str(), "true");
    EXPECT_EQ(last_argument("g args=[{other refers=settings.OTHER}]").constant.str(), "");
}

TEST(PythonValues, TheResultOfACastFollows) {
    const Program p =
        linked({kSettings, caller("?.to kind=method args=[{other param=0} {other refers=settings.HALF}] "
                                  "result.shape=other")});
    EXPECT_EQ(function_named(p, "t.f").calls.back().result.dtype, DType::fp16);
}

TEST(PythonValues, ANumberThatACallerCanChangeIsNotTaken) {
    EXPECT_EQ(last_argument("g args=[{other refers=settings.Config.eps}]").constant.str(), "");
}

TEST(PythonValues, AnEntryOfAnUnknownKeyIsOneOfAll) {
    const Operand dtype = last_argument(
        "?.__getitem__ kind=op args=[{other refers=settings.DTYPES} {other param=0}] result.shape=other\n"
        "    call 4:3 ?.to kind=method args=[{other param=0} {other call=0}]");
    EXPECT_EQ(dtype.dtype, DType::lowp);
}

TEST(PythonValues, NoDtypeAtAllIsOneMoreChoice) {
    const auto chosen = [](std::string_view returned) {
        const std::string choose =
            "unit choose.py language=python\n  func 1:1 choose.<module> kind=python\n"
            "  func 2:1 choose.choose kind=python\n" +
            std::string(returned);
        const Program p =
            linked({choose, caller("choose.choose callee=choose.choose result.shape=other\n"
                                   "    call 4:3 torch.autocast kind=constructor "
                                   "args=[{constant=\"'cuda'\"} {other call=0 keyword=dtype}]")});
        return function_named(p, "t.f").calls.back().args.back().alternative.str();
    };
    const std::string bf16 = "    return bf16 dtype constant=torch.bfloat16\n";
    const std::string fp16 = "    return fp16 dtype constant=torch.float16\n";
    const std::string none = "    return object constant=None\n";
    EXPECT_EQ(chosen(bf16 + none), "torch.bf16");
    EXPECT_EQ(chosen(bf16 + fp16 + none), "torch.lowp");
    EXPECT_EQ(chosen(none + bf16 + fp16), "torch.lowp");
    EXPECT_EQ(chosen(none + none), "");
}

// Names and callees of every call, for many files: the order of the threads must not show.
std::vector<std::string> meanings(const std::vector<Unit>& units, int threads) {
    const Program p = Program::link(units, {}, threads);
    std::vector<std::string> out;
    for (const Function* f : p.functions())
        for (const Call& c : f->calls)
            out.push_back(std::string(c.name.str()) + " " + std::string(c.callee.str()));
    return out;
}

TEST(PythonNames, ThreadsFindWhatOneFinds) {
    std::vector<std::string> texts{kLosses, exports("    type 1:1 pkg.losses.kl alias=pkg.kl\n")};
    for (int i = 0; i < 200; ++i) {
        const std::string m = "m" + std::to_string(i), before = "m" + std::to_string(i / 2);
        texts.push_back(
            "unit " + m + ".py language=python\n  func 1:1 " + m + ".<module> kind=python\n" + "  func 2:1 " +
            m + ".make kind=python params=[{other name=net}]\n" + "    call 3:3 pkg.kl callee=pkg.kl\n" +
            "    call 4:3 pkg.losses.Net kind=constructor callee=pkg.losses.Net result.shape=object\n" +
            "    call 5:3 ?.loss kind=method args=[{object call=1}]\n" + "    call 6:3 " + before +
            ".make callee=" + before + ".make args=[{object call=1}]\n" +
            "    call 7:3 ?.loss kind=method args=[{object param=0}]\n" + "    return object call=1\n");
    }
    const std::vector<Unit> units = units_of(texts);
    const std::vector<std::string> one = meanings(units, 1);
    EXPECT_EQ(std::ranges::count(one, "pkg.losses.kl pkg.losses.kl"), 200);
    EXPECT_GT(std::ranges::count(one, "pkg.losses.Base.loss pkg.losses.Base.loss"), 200)
        << "of what was made, and of what was passed";
    EXPECT_EQ(meanings(units, 8), one);
}

TEST(PythonNames, StarsReExportWhatTheModuleHas) {
    const std::string init = exports("    type 1:1 pkg.losses.* alias=pkg.*\n");
    EXPECT_EQ(meaning({kLosses, init, caller("pkg.kl callee=pkg.kl")}), "pkg.losses.kl pkg.losses.kl");
    EXPECT_EQ(meaning({kLosses, init, caller("pkg.mse callee=pkg.mse")}), "pkg.mse pkg.mse");
}

TEST(PythonNames, CyclesOfReExportsEnd) {
    const std::string init = exports("    type 1:1 pkg.b alias=pkg.a\n    type 1:1 pkg.a alias=pkg.b\n");
    EXPECT_NE(meaning({init, caller("pkg.a callee=pkg.a")}), "");
}

TEST(PythonNames, ModulesBesideAScriptAreFound) {
    const std::string helper =
        "unit h.py language=python\n  func 1:1 scripts.helpers.<module> kind=python\n"
        "  func 2:1 scripts.helpers.go kind=python\n";
    EXPECT_EQ(meaning({helper, caller("helpers.go callee=helpers.go", "scripts.train")}, "scripts.train.f"),
              "scripts.helpers.go scripts.helpers.go");
}

TEST(PythonNames, MethodsAreInheritedFromTheProgramAndFromLibraries) {
    EXPECT_EQ(meaning({kLosses, caller("pkg.losses.Net.loss kind=method "
                                       "callee=pkg.losses.Net.loss args=[{module}]")}),
              "pkg.losses.Base.loss pkg.losses.Base.loss");
    EXPECT_EQ(meaning({kLosses, caller("pkg.losses.Net.half kind=method "
                                       "callee=pkg.losses.Net.half args=[{module}]")}),
              "torch.nn.Module.half ");
}

TEST(PythonNames, AnObjectOfAnotherFilesModuleIsAModule) {
    const Program p = linked(
        {kLosses,
         "unit k.py language=python\n  func 1:1 k.main kind=python\n"
         "    call 2:3 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__ result.shape=object\n"
         "    call 2:9 pkg.losses.Net.half kind=method callee=pkg.losses.Net.half args=[{object call=0}] "
         "result.shape=other\n"
         "    call 3:3 pkg.losses.Net.parameters kind=method callee=pkg.losses.Net.parameters "
         "args=[{object call=1}] result.shape=other\n"
         "    return object call=1\n"});
    const Function& main = function_named(p, "k.main");
    EXPECT_EQ(main.calls[0].result.shape, Shape::module);
    EXPECT_EQ(main.calls[1].result.dtype, DType::fp16);
    EXPECT_EQ(main.calls[2].args[0].shape, Shape::module);
    EXPECT_EQ(main.calls[2].result.shape, Shape::parameters);
    EXPECT_EQ(main.returned[0].dtype, DType::fp16);
}

TEST(PythonNames, ApplyOfAFunctionRunsItsForward) {
    const std::string function =
        "unit m.py language=python\n  func 1:1 m.<module> kind=python\n"
        "  func 2:1 m.Mul.forward kind=python parent_class=m.Mul "
        "bases=[torch.autograd.Function] annotations=[staticmethod] params=[{other name=ctx} "
        "{other name=a}]\n    call 3:3 torch.exp op=exp args=[{other param=1}]\n";
    const Program p = linked({function, caller("m.Mul.apply callee=m.Mul.apply args=[{fp16 tensor}]")});
    const Function& forward = function_named(p, "m.Mul.forward");
    EXPECT_EQ(p.dtype_of(forward, forward.calls[0].args[0]).dtype, DType::fp16);
}

TEST(PythonNames, ObjectsKeepTheirClassThroughCallsAndResults) {
    const std::string maker =
        "unit k.py language=python\n  func 1:1 k.make kind=python\n"
        "    call 2:3 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__\n"
        "    call 2:9 ?.cuda kind=method args=[{object call=0}]\n    return object call=1\n"
        "  func 5:1 k.use kind=python params=[{other name=net}]\n"
        "    call 6:3 ?.__call__ kind=method args=[{other param=0}]\n"
        "  func 7:1 k.main kind=python\n    call 7:3 k.make callee=k.make\n"
        "    call 8:3 k.use callee=k.use args=[{other call=0}]\n";
    EXPECT_EQ(meaning({kLosses, maker}, "k.use"), "pkg.losses.Net.forward pkg.losses.Net.forward");
}

TEST(PythonNames, ObjectsOfLibrariesKeepTheirClassToo) {
    const auto method = [](std::string_view maker, std::string_view name) {
        return meaning({"unit k.py language=python\n"
                        "  func 1:1 k.use kind=python params=[{other name=o}]\n    call 6:3 ?." +
                        std::string(name) +
                        " kind=method args=[{other param=0}]\n"
                        "  func 7:1 k.main kind=python\n    call 7:1 " +
                        std::string(maker) +
                        " kind=constructor\n    call 8:3 k.use callee=k.use args=[{object "
                        "call=0}]\n"},
                       "k.use");
    };
    EXPECT_EQ(method("torch.amp.GradScaler", "unscale_"), "torch.amp.GradScaler.unscale_ ");
    EXPECT_EQ(method("torch.nn.Linear", "__call__"), "torch.nn.Linear.forward ");
    EXPECT_EQ(method("torch.nn.Linear", "half"), "torch.nn.Module.half ");
    EXPECT_EQ(method("list", "append"), "?.append ");
}

// Each round uses the results of the previous one: k.use calls k.Runner.run only once the class of its
// receiver is known.
TEST(PythonNames, CallsThatWereFoundPassObjectsOn) {
    const std::string text =
        "unit k.py language=python\n"
        "  func 1:1 k.Runner.run kind=python parent_class=k.Runner params=[{object name=self} "
        "{other name=net}]\n    call 2:3 ?.loss kind=method args=[{other param=1}]\n"
        "  func 5:1 k.use kind=python params=[{other name=runner} {other name=net}]\n"
        "    call 6:3 ?.run kind=method args=[{other param=0} {other param=1}]\n"
        "  func 8:1 k.main kind=python\n"
        "    call 9:1 k.Runner kind=constructor callee=k.Runner.__init__\n"
        "    call 9:9 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__\n"
        "    call 10:3 k.use callee=k.use args=[{object call=0} {object call=1}]\n";
    EXPECT_EQ(meaning({kLosses, text}, "k.use"), "k.Runner.run k.Runner.run");
    EXPECT_EQ(meaning({kLosses, text}, "k.Runner.run"), "pkg.losses.Base.loss pkg.losses.Base.loss");
}

TEST(PythonNames, AnObjectOfTwoClassesIsOfNone) {
    const std::string user =
        "unit k.py language=python\n  func 1:1 k.use kind=python params=[{other name=net}]\n"
        "    call 6:3 ?.__call__ kind=method args=[{other param=0}]\n"
        "  func 7:1 k.main kind=python\n"
        "    call 7:1 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__\n"
        "    call 7:2 pkg.losses.Base kind=constructor callee=pkg.losses.Base.__init__\n"
        "    call 8:3 k.use callee=k.use args=[{object call=0}]\n"
        "    call 8:3 k.use callee=k.use args=[{object call=1}]\n";
    EXPECT_EQ(meaning({kLosses, user}, "k.use"), "?.__call__ ");
}

// A trainer that is given its model, and what else makes one.
std::string trainer(std::string_view key, std::string_view value, std::string_view more = "") {
    return "unit k.py language=python\n  func 1:1 k.<module> kind=python\n"
           "  func 2:1 k.Base.__init__ kind=python parent_class=k.Base params=[{object name=self} "
           "{other name=model}]\n    call 3:3 ?.to kind=method args=[{other param=1}]\n"
           "    setting 2:1 " +
           std::string(key) + " value.shape=other " + std::string(value) +
           "\n"
           "  func 5:1 k.Trainer.step kind=python parent_class=k.Trainer bases=[k.Base] "
           "params=[{object name=self}]\n"
           "    call 6:3 ?.__call__ kind=method args=[{other name=self.model}]\n"
           "  func 9:1 k.main kind=python\n"
           "    call 9:1 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__\n"
           "    call 9:9 k.Base kind=constructor callee=k.Base.__init__ args=[{object call=0}]\n" +
           std::string(more);
}

TEST(PythonNames, ConstructorsKeepWhatTheyAreGiven) {
    const std::string found = "pkg.losses.Net.forward pkg.losses.Net.forward";
    EXPECT_EQ(meaning({kLosses, trainer("self.model", "value.param=1")}, "k.Trainer.step"), found);
    EXPECT_EQ(meaning({kLosses, trainer("self.model", "value.call=0")}, "k.Trainer.step"), found)
        << "model.to(device) is the model";
    EXPECT_EQ(meaning({kLosses, trainer("self.other", "value.param=1")}, "k.Trainer.step"), "?.__call__ ");
    const std::string_view second =
        "    call 10:1 pkg.losses.Base kind=constructor callee=pkg.losses.Base.__init__\n"
        "    call 10:9 k.Base kind=constructor callee=k.Base.__init__ args=[{object call=2}]\n";
    EXPECT_EQ(meaning({kLosses, trainer("self.model", "value.param=1", second)}, "k.Trainer.step"),
              "?.__call__ ")
        << "models of two classes";
}

TEST(PythonNames, TheTargetOfALoopHasTheClassThatAllItemsHave) {
    const auto loop = [](const std::string& second) {
        return meaning({kLosses,
                        "unit k.py language=python\n  func 1:1 k.<module> kind=python\n"
                        "  func 5:1 k.f kind=python\n"
                        "    call 6:1 pkg.losses.Net kind=constructor callee=pkg.losses.Net.__init__\n"
                        "    call 6:9 pkg.losses." +
                            second + " kind=constructor callee=pkg.losses." + second +
                            ".__init__\n"
                            "    call 6:9 list kind=constructor args=[{object call=0} {object call=1}]\n"
                            "    call 7:3 ?.__next__ kind=op args=[{other call=2}] result.shape=other\n"
                            "    call 8:3 ?.loss kind=method args=[{other call=3}]\n"},
                       "k.f");
    };
    EXPECT_EQ(loop("Net"), "pkg.losses.Base.loss pkg.losses.Base.loss");
    EXPECT_EQ(loop("Base"), "?.loss ");
}

TEST(PythonNames, AFunctionThatReturnsAContextIsEnteredAsThatContext) {
    const std::string text =
        "unit c.py language=python\n  func 1:1 c.<module> kind=python\n"
        "  func 2:1 c.amp kind=python params=[{other name=on}]\n"
        "    call 3:3 torch.cuda.amp.autocast kind=constructor args=[{other param=0 text=on "
        "keyword=enabled}]\n    return object call=0\n"
        "  func 5:1 c.f kind=python\n"
        "    call 6:3 c.amp callee=c.amp args=[{constant=true}]\n"
        "    call 6:3 c.amp.__enter__ kind=method callee=c.amp.__enter__ args=[{object call=0} "
        "{constant=true}]\n    call 7:3 torch.exp\n"
        "    call 6:3 c.amp.__exit__ kind=method callee=c.amp.__exit__ args=[{object call=1}]\n"
        "    call 8:3 torch.exp\n";
    const Program p = linked({text});
    EXPECT_EQ(states(p, "c.f", 2), "on:fp16");
    EXPECT_EQ(states(p, "c.f", 4), "off");
}

TEST(PythonNames, ThreadsStartFresh) {
    const std::string text =
        "unit c.py language=python\n  func 2:1 c.work kind=python\n    call 3:3 torch.exp\n"
        "  func 5:1 c.f kind=python\n"
        "    call 6:3 torch.cuda.amp.autocast kind=constructor\n"
        "    call 6:3 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0}]\n"
        "    call 7:3 threading.Thread kind=constructor args=[{other keyword=target}] "
        "lambdas=[c.work]\n";
    EXPECT_EQ(states(linked({text}), "c.work", 0), "off");
}

TEST(Names, ItemsOfAListThatAFunctionPassesToItselfEnd) {
    const Program p =
        linked({"unit a.py language=python\n  func 1:1 a.f kind=python params=[{name=items}]\n"
                "    call 2:3 a.f callee=a.f args=[{param=0 name=items}]\n"
                "    call 3:3 ?.__getitem__ kind=op args=[{param=0 name=items} {constant=0}]\n"
                "    call 4:3 ?.step kind=method args=[{call=1}]\n"});
    EXPECT_EQ(p.functions().size(), 1U);
}

}  // namespace
}  // namespace mp::lint
