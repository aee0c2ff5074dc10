// Regions of Python programs: `with` blocks, their flags, islands, and what trainers open.

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

// A function `f` of one module whose calls are the given lines.
std::string python(std::string_view lines, std::string_view more = "params=[{other name=x}]") {
    return "unit a.py language=python\n  func 1:1 a.f kind=python " + std::string(more) + "\n" +
           std::string(lines);
}

// with <manager>(<args>): op()   op()
std::string with(std::string_view manager, std::string_view args = "") {
    const std::string name(manager), arguments(args);
    return "    call 2:6 " + name + " kind=constructor args=[" + arguments + "]\n" + "    call 2:6 " + name +
           ".__enter__ kind=method args=[{object call=0} " + arguments + "]\n" +
           "    call 3:3 torch.relu op=relu\n" + "    call 2:6 " + name +
           ".__exit__ kind=method args=[{object call=1}]\n" + "    call 4:3 torch.relu op=relu\n";
}

std::string inside(std::string_view manager, std::string_view args = "") {
    return states(linked({python(with(manager, args))}), "a.f", 2);
}

TEST(PythonRegion, OpensAtEnterAndClosesAtExit) {
    const Program p = linked({python(with("torch.autocast", "{object constant=\"'cuda'\"}"))});
    EXPECT_EQ(states(p, "a.f", 2), "on:fp16");
    EXPECT_EQ(states(p, "a.f", 4), "off");
    const Context* c = p.enabled_context(function_named(p, "a.f"), function_named(p, "a.f").calls[2]);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->opener.str(), "torch.autocast");
    EXPECT_EQ(c->opened.line, 2u);
}

TEST(PythonRegion, EverySpellingHasItsDeviceAndDefault) {
    EXPECT_EQ(inside("torch.autocast", "{object constant=\"'cpu'\"}"), "on:bf16/cpu");
    EXPECT_EQ(inside("torch.amp.autocast", "{object constant=\"'hpu'\" keyword=device_type}"), "on:bf16/hpu");
    EXPECT_EQ(inside("torch.amp.autocast_mode.autocast", "{object constant=\"'mps'\"}"), "on:fp16/mps");
    EXPECT_EQ(inside("torch.cuda.amp.autocast"), "on:fp16");
    EXPECT_EQ(inside("torch.cpu.amp.autocast"), "on:bf16/cpu");
    EXPECT_EQ(inside("torch.xpu.amp.autocast"), "on:fp16/xpu");
    EXPECT_EQ(inside("torch_xla.amp.autocast", "{object name=device}"), "on:bf16/xla");
    EXPECT_EQ(inside("torch.autocast", "{object name=device_type}"), "on:lowp/");
}

// with held(): op(), where the held function is this operand
std::string with_held(std::string_view held) {
    return "    call 2:6 ?.__call__ kind=method args=[" + std::string(held) +
           "] result.shape=other\n    call 2:6 ?.__call__.__enter__ kind=method args=[{object call=0}]\n"
           "    call 3:3 torch.relu op=relu\n    call 2:6 ?.__call__.__exit__ kind=method args=[{object "
           "call=1}]\n";
}

std::string partial(std::string_view arguments) {
    return "functools.partial args=[{constant=torch.autocast} " + std::string(arguments) +
           "] result.shape=other\n";
}

TEST(PythonRegion, AFunctionThatIsHeldMakesIt) {
    const std::string half = "{object constant=\"'cuda'\"} {fp16 dtype constant=torch.float16 keyword=dtype}";
    const auto inside_of = [](const std::vector<std::string>& units) {
        return states(linked(units), "a.f", 2);
    };
    EXPECT_EQ(inside_of({python(with_held("{other name=amp alternative=torch.cuda.amp.autocast}"))}),
              "on:fp16? off");
    const std::string settings =
        "unit settings.py language=python\n  func 1:1 settings.<module> kind=python\n    call 1:8 ";
    const std::string defined = "    define 1:1 settings.amp value.shape=other value.call=0\n";
    const std::string refers = python(with_held("{other name=amp refers=settings.amp}"));
    EXPECT_EQ(inside_of({settings + partial(half) + defined, refers}), "on:fp16");
    EXPECT_EQ(inside_of({settings + partial(half + " {constant=false keyword=enabled}") + defined, refers}),
              "off");
}

TEST(PythonRegion, TheConditionOfAHeldFunctionIsKept) {
    std::string calls = with_held("{other name=amp alternative=torch.cuda.amp.autocast}");
    const std::string enter = "__enter__ kind=method args=[{object call=0}";
    calls.insert(calls.find(enter) + enter.size(), " {other text=args.amp keyword=<when>}");
    const Program p = linked({python(calls)});
    const Function& f = function_named(p, "a.f");
    ASSERT_NE(p.enabled_context(f, f.calls[2]), nullptr);
    EXPECT_EQ(p.enabled_context(f, f.calls[2])->condition.str(), "args.amp");
}

TEST(PythonRegion, ACallerPassesTheFunctionThatMakesIt) {
    const std::string f = python(with_held("{other param=0 name=x}"));
    const auto called_with = [&](std::string_view given) {
        const std::string caller = "unit b.py language=python\n  func 1:1 b.g kind=python\n    call 2:3 " +
                                   partial("{object constant=\"'cuda'\"}") +
                                   "    call 3:3 a.f callee=a.f args=[" + std::string(given) + "]\n";
        return states(linked({f, caller}), "a.f", 2);
    };
    EXPECT_EQ(called_with("{other call=0}"), "on:fp16? off");
    EXPECT_EQ(called_with("{other constant=contextlib.nullcontext}"), "off");
}

TEST(PythonRegion, TheDtypeIsTheArgumentByKeywordOrPosition) {
    const std::string by_keyword =
        "{object constant=\"'cuda'\"} {constant=torch.bfloat16 dtype=bf16 shape=dtype "
        "keyword=dtype}";
    const std::string by_position =
        "{object constant=\"'cuda'\"} {constant=torch.bfloat16 dtype=bf16 shape=dtype}";
    EXPECT_EQ(inside("torch.autocast", by_keyword), "on:bf16");
    EXPECT_EQ(inside("torch.autocast", by_position), "on:bf16");
    EXPECT_EQ(inside("torch.autocast", "{object constant=\"'cuda'\"} {name=dt keyword=dtype}"), "on:lowp");
    EXPECT_EQ(inside("torch.autocast", "{object constant=\"'cuda'\"} {constant=None keyword=dtype}"),
              "on:fp16");
}

TEST(PythonRegion, InFp32IsNone) {
    EXPECT_EQ(inside("torch.autocast",
                     "{object constant=\"'cuda'\"} {constant=torch.float32 dtype=fp32 shape=dtype "
                     "keyword=dtype}"),
              "off");
}

TEST(PythonRegion, AFlagMakesItConditional) {
    const Program p = linked(
        {python(with("torch.cuda.amp.autocast", "{constant=\"\" text=\"args.amp\" keyword=enabled}"))});
    EXPECT_EQ(states(p, "a.f", 2), "on:fp16? off");
    const Function& f = function_named(p, "a.f");
    EXPECT_EQ(p.enabled_context(f, f.calls[2])->condition.str(), "args.amp");
    EXPECT_EQ(inside("torch.cuda.amp.autocast", "{constant=true}"), "on:fp16");
    EXPECT_EQ(inside("torch.cuda.amp.autocast", "{constant=false}"), "off");
}

TEST(PythonRegion, AConditionalContextIsEnteredOnOneSideOnly) {
    EXPECT_EQ(inside("torch.cuda.amp.autocast", "{keyword=<when> text=amp}"), "on:fp16? off");
    // The same flag again, on a branch.
    const Program p =
        linked({python("    block to=[{1 condition=amp} {2 condition=amp when=false}]\n"
                       "    block to=[2]\n    block leaves\n"
                       "    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
                       "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0} "
                       "{keyword=<when> text=amp constant=false}]\n"
                       "    call 3:3 torch.relu op=relu block=1\n")});
    EXPECT_EQ(states(p, "a.f", 2), "off");
}

TEST(PythonRegion, ManyFlagsDoNotMultiply) {
    std::string lines;
    for (int i = 0; i < 30; ++i) {
        const std::string at = std::to_string(3 * i), enter = std::to_string(3 * i + 1);
        lines +=
            "    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
            "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=" +
            at + "} {text=flag" + at + " keyword=enabled}]\n" +
            "    call 2:6 torch.cuda.amp.autocast.__exit__ kind=method args=[{object call=" + enter + "}]\n";
    }
    lines += "    call 9:9 torch.relu op=relu\n";
    EXPECT_EQ(states(linked({python(lines)}), "a.f", 90), "off");
}

TEST(PythonRegion, ManyBlocksUnderConditionsDoNotMultiply) {
    std::string blocks, calls;
    for (int i = 0; i < 20; ++i) {
        const std::string inside = std::to_string(2 * i + 1), next = std::to_string(2 * i + 2);
        const std::string condition = "c" + std::to_string(i);
        blocks += "    block to=[{" + inside + " condition=" + condition + "} {" + next +
                  " condition=" + condition + " when=false}]\n    block to=[" + next + "]\n";
        calls +=
            "    call 2:6 torch.no_grad kind=constructor block=" + inside +
            "\n    call 2:6 torch.no_grad.__enter__ kind=method args=[{object call=" + std::to_string(3 * i) +
            "}] block=" + inside + "\n    call 2:6 torch.no_grad.__exit__ kind=method args=[{object call=" +
            std::to_string(3 * i + 1) + "}] block=" + inside + "\n";
    }
    const Program p = linked(
        {python(blocks + "    block leaves\n" + calls + "    call 9:9 torch.relu op=relu block=40\n")});
    EXPECT_EQ(states(p, "a.f", 60), "off");
    const Function& f = function_named(p, "a.f");
    EXPECT_EQ(p.contexts(f, f.calls[60])[0].grad, Switch::on);
}

TEST(PythonRegion, AnExceptionLeavesTheBlocksItsHandlerIsNotIn) {
    // with A: try: with B: work()  except: handle()
    const std::string manager = "torch.cuda.amp.autocast", cpu = "torch.cpu.amp.autocast";
    const Program p =
        linked({python("    block to=[1]\n    block to=[{2} {3 raises}]\n    block to=[4]\n    block to=[4]\n"
                       "    block leaves\n"
                       "    call 2:6 " +
                       manager +
                       " kind=constructor\n"
                       "    call 2:6 " +
                       manager +
                       ".__enter__ kind=method args=[{object call=0}]\n"
                       "    call 3:6 " +
                       cpu +
                       " kind=constructor block=1\n"
                       "    call 3:6 " +
                       cpu +
                       ".__enter__ kind=method args=[{object call=2}] block=1\n"
                       "    call 4:6 work block=1\n"
                       "    call 3:6 " +
                       cpu +
                       ".__exit__ kind=method args=[{object call=3}] block=2\n"
                       "    call 6:6 handle block=3\n"
                       "    call 7:6 after block=4\n"
                       "    call 2:6 " +
                       manager + ".__exit__ kind=method args=[{object call=1}] block=4\n")});
    EXPECT_EQ(states(p, "a.f", 4), "on:fp16 on:bf16/cpu");
    EXPECT_EQ(states(p, "a.f", 6), "on:fp16") << "the handler";
    EXPECT_EQ(states(p, "a.f", 7), "on:fp16") << "after both";
}

TEST(PythonRegion, ABlockNeverOutlivesItsFunction) {
    const Program p = linked(
        {python("    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
                "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0}]\n") +
         "  func 5:1 a.g kind=python\n    call 6:3 a.f callee=a.f\n    call 7:3 torch.exp\n"});
    EXPECT_EQ(states(p, "a.g", 1), "off");
}

TEST(PythonRegion, AnIslandIsOffAndSaysWho) {
    const Program p =
        linked({python("    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
                       "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0}]\n"
                       "    call 3:6 torch.cuda.amp.autocast kind=constructor args=[{constant=false "
                       "keyword=enabled}]\n"
                       "    call 3:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=2} "
                       "{constant=false keyword=enabled}]\n"
                       "    call 4:3 torch.exp op=exp\n"
                       "    call 3:6 torch.cuda.amp.autocast.__exit__ kind=method args=[{object call=3}]\n"
                       "    call 5:3 torch.exp op=exp\n")});
    const Function& f = function_named(p, "a.f");
    EXPECT_EQ(states(p, "a.f", 4), "off");
    EXPECT_EQ(p.contexts(f, f.calls[4])[0].opened.line, 3u);
    EXPECT_EQ(p.contexts(f, f.calls[4])[0].device.str(), "cuda");
    EXPECT_EQ(states(p, "a.f", 6), "on:fp16");
}

TEST(PythonRegion, AnotherDevicesIslandChangesNothing) {
    const std::string enabled = "{constant=false keyword=enabled}";
    const Program p =
        linked({python("    call 2:6 torch.autocast kind=constructor args=[{object constant=\"'hpu'\"}]\n"
                       "    call 2:6 torch.autocast.__enter__ kind=method args=[{object call=0} {object "
                       "constant=\"'hpu'\"}]\n"
                       "    call 3:6 torch.cuda.amp.autocast kind=constructor args=[" +
                       enabled +
                       "]\n"
                       "    call 3:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=2} " +
                       enabled + "]\n    call 4:3 torch.exp op=exp\n")});
    EXPECT_EQ(states(p, "a.f", 4), "on:bf16/hpu");
}

TEST(PythonRegion, ANestedOneKeepsTheOuterDtype) {
    const std::string cuda = "{object constant=\"'cuda'\"}";
    const Program p =
        linked({python("    call 2:6 torch.autocast kind=constructor\n"
                       "    call 2:6 torch.autocast.__enter__ kind=method args=[{object call=0} " +
                       cuda +
                       " {constant=torch.bfloat16 dtype=bf16 shape=dtype keyword=dtype}]\n"
                       "    call 3:6 torch.autocast kind=constructor\n"
                       "    call 3:6 torch.autocast.__enter__ kind=method args=[{object call=2} " +
                       cuda +
                       "]\n"
                       "    call 4:3 torch.exp op=exp\n")});
    EXPECT_EQ(states(p, "a.f", 4), "on:bf16");
}

TEST(PythonRegion, ReachesWhatIsCalledInAnotherFile) {
    const Program p =
        linked({python("    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
                       "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object "
                       "call=0}]\n"
                       "    call 3:3 b.g callee=b.g\n"
                       "    call 2:6 torch.cuda.amp.autocast.__exit__ kind=method args=[{object "
                       "call=1}]\n"),
                "unit b.py language=python\n  func 1:1 b.g kind=python\n    call 2:3 torch.stft op=stft\n"});
    EXPECT_EQ(states(p, "b.g", 0), "on:fp16");
    const Function& g = function_named(p, "b.g");
    EXPECT_EQ(p.enabled_context(g, g.calls[0])->chain.size(), 1u);
}

TEST(PythonRegion, AGeneratorMadeAManagerOpensForItsCaller) {
    const std::string generator =
        "  func 9:1 a.amp.__enter__ kind=python params=[{other name=enabled}]\n"
        "    call 9:6 torch.cuda.amp.autocast kind=constructor\n"
        "    call 9:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0} {other "
        "name=enabled param=0 text=enabled keyword=enabled}]\n"
        "  func 9:1 a.amp.__exit__ kind=python\n"
        "    call 9:6 torch.cuda.amp.autocast.__exit__ kind=method\n";
    const auto caller = [&](std::string_view argument) {
        return python("    call 2:6 a.amp callee=a.amp args=[{constant=" + std::string(argument) +
                      "}]\n"
                      "    call 2:6 a.amp.__enter__ kind=method callee=a.amp.__enter__ "
                      "args=[{object call=0} {constant=" +
                      std::string(argument) +
                      "}]\n"
                      "    call 3:3 torch.relu op=relu\n"
                      "    call 2:6 a.amp.__exit__ kind=method callee=a.amp.__exit__ "
                      "args=[{object call=1}]\n"
                      "    call 4:3 torch.relu op=relu\n") +
               generator;
    };
    EXPECT_EQ(states(linked({caller("true")}), "a.f", 2), "on:fp16");
    EXPECT_EQ(states(linked({caller("false")}), "a.f", 2), "off");
    EXPECT_EQ(states(linked({caller("true")}), "a.f", 4), "off");
}

// if deep: net = Net(), else: net = timm.create_model(name); net = net.cuda(); net(x)
TEST(PythonRegion, EntersEachModuleThatABranchGivesAVariable) {
    const auto state = [](std::string name, std::string used) {
        const Program p = linked(
            {"unit a.py language=python\n  func 1:1 a.<module> kind=python\n"
             "    call 2:3 a.Net kind=constructor callee=a.Net.__init__ result.shape=module result.name=" +
             name + "\n    call 3:3 timm.create_model result.shape=module result.name=" + name +
             "\n    call 4:3 torch.nn.Module.cuda kind=method args=[{module " + used +
             " span=4:3-6}] result.shape=module result.name=" + name +
             "\n    call 5:3 torch.autocast kind=constructor args=[{constant=\"'cuda'\"}]\n"
             "    call 5:3 torch.autocast.__enter__ kind=method args=[{object call=3} "
             "{constant=\"'cuda'\"}]\n"
             "    call 6:3 torch.nn.Module.forward kind=method args=[{module call=2}]\n"
             "    call 7:3 torch.autocast.__exit__ kind=method args=[{object call=4}]\n"
             "  func 9:1 a.Net.forward kind=python parent_class=a.Net bases=[torch.nn.Module]\n"
             "    call 9:3 torch.exp\n"});
        return states(p, "a.Net.forward", 0);
    };
    EXPECT_EQ(state("net", "name=net"), "on:fp16?");
    EXPECT_EQ(state("net", "name=net refers=a.net"), "on:fp16?");
    EXPECT_EQ(state("net", "name=other"), "off");
}

TEST(PythonRegion, SettersWorkAsInCpp) {
    const Program p =
        linked({python("    call 2:3 torch.set_autocast_enabled args=[{constant=true}]\n"
                       "    call 3:3 torch.relu op=relu\n"
                       "    call 4:3 torch.set_autocast_enabled args=[{constant=false}]\n"
                       "    call 5:3 torch.relu op=relu\n")});
    EXPECT_EQ(states(p, "a.f", 1), "on:fp16");
    EXPECT_EQ(states(p, "a.f", 3), "off");
    EXPECT_TRUE(leaks(p).empty());
}

TEST(PythonRegion, CustomFwdWithCastInputsLeavesIt) {
    const auto called = [](std::string_view annotation) {
        return linked({python("    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
                              "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method "
                              "args=[{object call=0}]\n"
                              "    call 3:3 a.F.forward callee=a.F.forward\n") +
                       "  func 9:1 a.F.forward kind=python parent_class=a.F annotations=[\"" +
                       std::string(annotation) + "\"]\n    call 9:9 torch.exp op=exp\n"});
    };
    EXPECT_EQ(states(called("torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)"), "a.F.forward", 0),
              "off");
    EXPECT_EQ(states(called("torch.cuda.amp.custom_fwd"), "a.F.forward", 0), "on:fp16");
}

TEST(PythonRegion, UnpackedArgumentsMaySwitchItOff) {
    EXPECT_EQ(states(linked({python(with("torch.amp.autocast", "{name=kwargs keyword=**}"))}), "a.f", 2)
                  .substr(0, 2),
              "un");
    EXPECT_EQ(states(linked({python(with("torch.amp.autocast",
                                         "{name=kwargs keyword=**} {constant=true keyword=enabled}"))}),
                     "a.f", 2)
                  .substr(0, 2),
              "on");
}

// ---- Gradients. ------------------------------------------------------------------------------------

Switch grad(const Program& p, std::string_view name, std::size_t call) {
    const Function& f = function_named(p, name);
    return p.contexts(f, f.calls[call])[0].grad;
}

TEST(PythonGrad, IsOffUnderNoGradAndInferenceMode) {
    for (const std::string_view manager : {"torch.no_grad", "torch.inference_mode"}) {
        const Program p = linked({python(with(manager))});
        EXPECT_EQ(grad(p, "a.f", 2), Switch::off) << manager;
        EXPECT_EQ(grad(p, "a.f", 4), Switch::on) << manager;
        EXPECT_EQ(states(p, "a.f", 2), "off");
    }
    EXPECT_EQ(grad(linked({python(with("torch.enable_grad"))}), "a.f", 2), Switch::on);
    EXPECT_EQ(grad(linked({python(with("torch.inference_mode", "{constant=false}"))}), "a.f", 2), Switch::on);
    EXPECT_EQ(grad(linked({python(with("torch.set_grad_enabled", "{constant=false}"))}), "a.f", 2),
              Switch::off);
    EXPECT_EQ(grad(linked({python(with("torch.set_grad_enabled", "{text=train}"))}), "a.f", 2),
              Switch::unknown);
}

TEST(PythonGrad, FollowsCallsAndIsUnknownWhenTheyDiffer) {
    const std::string g =
        "unit b.py language=python\n  func 1:1 b.g kind=python\n    call 2:3 torch.exp op=exp\n";
    const std::string off = python(
        "    call 2:6 torch.no_grad kind=constructor\n"
        "    call 2:6 torch.no_grad.__enter__ kind=method args=[{object call=0}]\n"
        "    call 3:3 b.g callee=b.g\n"
        "    call 2:6 torch.no_grad.__exit__ kind=method args=[{object call=1}]\n");
    EXPECT_EQ(grad(linked({off, g}), "b.g", 0), Switch::off);
    EXPECT_EQ(grad(linked({off + "    call 5:3 b.g callee=b.g\n", g}), "b.g", 0), Switch::unknown);
}

TEST(PythonGrad, GuardsOfCppCountToo) {
    const Program p =
        linked({"unit a.cpp\n  func 1:1 f\n"
                "    call 2:3 at::NoGradGuard kind=constructor\n"
                "    call 3:3 at::exp op=exp\n"
                "    call 4:1 at::NoGradGuard::~NoGradGuard kind=destructor\n"
                "    call 5:3 at::exp op=exp\n"});
    EXPECT_EQ(grad(p, "f", 1), Switch::off);
    EXPECT_EQ(grad(p, "f", 3), Switch::on);
    EXPECT_TRUE(leaks(p).empty());
}

// ---- Regions around functions. ----------------------------------------------------------------------

TEST(OuterRegion, HmpConvertIsOneOfTheProcessAndDisableCastsLeavesIt) {
    const Program p =
        linked({"unit app/main.py language=python\n  func 1:1 main.go kind=python\n"
                "    call 2:3 habana_frameworks.torch.hpex.hmp.convert\n"
                "    call 3:3 ?.step kind=method\n"
                "    call 4:6 habana_frameworks.torch.hpex.hmp.disable_casts kind=constructor\n"
                "    call 4:6 habana_frameworks.torch.hpex.hmp.disable_casts.__enter__ kind=method "
                "args=[{object call=2}]\n"
                "    call 5:3 ?.step kind=method\n"
                "    call 6:3 getattr args=[{refers=lib}]\n",
                "unit app/lib/b.py language=python\n  func 1:1 lib.b.g kind=python\n    call 2:3 torch.exp\n",
                "unit other/c.py language=python\n  func 1:1 c.h kind=python\n    call 2:3 torch.exp\n"});
    EXPECT_EQ(states(p, "main.go", 1), "on:bf16/hmp off");
    EXPECT_EQ(states(p, "main.go", 4), "off");
    EXPECT_EQ(states(p, "lib.b.g", 0), "on:bf16/hmp off");
    EXPECT_EQ(states(p, "c.h", 0), "off") << "another program";
    const Function& f = function_named(p, "main.go");
    EXPECT_TRUE(p.contexts(f, f.calls[1])[0].process_wide);
}

TEST(OuterRegion, AFolderThatTheProgramNeitherRunsNorNamesIsAnotherProgram) {
    const auto state = [](std::string_view call) {
        return states(linked({"unit main.py language=python\n  func 1:1 main.go kind=python\n"
                              "    call 2:3 apex.amp.initialize\n    call 3:3 " +
                                  std::string(call),
                              "unit models/net.py language=python\n  func 1:1 models.net.f kind=python\n"
                              "    call 2:3 torch.exp\n",
                              "unit models/__init__.py language=python\n  func 4:1 models.g kind=python\n"}),
                      "models.net.f", 0);
    };
    EXPECT_EQ(state("torch.exp"), "off");
    EXPECT_EQ(state("models.g callee=models.g"), "on:fp16/apex off")
        << "it runs another function of the folder";
    EXPECT_EQ(state("models.make"), "on:fp16/apex off");
    EXPECT_EQ(state("getattr args=[{refers=models}]"), "on:fp16/apex off");
    EXPECT_EQ(state("importlib.import_module args=[{text=\"'models.' + name\"}]"), "on:fp16/apex off");
    EXPECT_EQ(state("print args=[{text=\"'other.' + name\"}]"), "off");
}

TEST(OuterRegion, ATrainersPrecisionHoldsInTheMethodsItCalls) {
    const auto program = [](std::string_view precision) {
        return linked(
            {"unit a.py language=python\n  func 1:1 a.<module> kind=python\n"
             "    call 2:3 pytorch_lightning.Trainer kind=constructor args=[{constant=\"" +
             std::string(precision) +
             "\" keyword=precision}]\n"
             "  func 3:1 a.Net.training_step kind=python parent_class=a.Net "
             "bases=[a.Base]\n    call 3:3 a.h callee=a.h\n"
             "  func 4:1 a.Base.log_it kind=python parent_class=a.Base "
             "bases=[pytorch_lightning.LightningModule]\n    call 4:3 torch.exp\n"
             "  func 5:1 a.h kind=python\n    call 5:3 torch.exp\n"});
    };
    const Program mixed = program("'16-mixed'");
    EXPECT_EQ(states(mixed, "a.Net.training_step", 0), "on:fp16/");
    EXPECT_EQ(states(mixed, "a.h", 0), "on:fp16/");
    EXPECT_EQ(states(mixed, "a.Base.log_it", 0), "off");
    const Function& h = function_named(mixed, "a.h");
    EXPECT_TRUE(mixed.contexts(h, h.calls[0])[0].framework);
    EXPECT_EQ(states(program("bf16"), "a.h", 0), "on:bf16/");
    EXPECT_EQ(states(program("32-true"), "a.h", 0), "off");
    EXPECT_EQ(states(program("16-true"), "a.h", 0), "off") << "the weights are cast instead";
}

TEST(OuterRegion, APreparedModelsForwardRunsInTheAcceleratorsRegion) {
    const Program p =
        linked({"unit a.py language=python\n  func 1:1 a.main kind=python\n"
                "    call 2:3 accelerate.Accelerator kind=constructor args=[{constant=\"'bf16'\" "
                "keyword=mixed_precision}]\n"
                "    call 3:3 a.Net kind=constructor callee=a.Net.__init__\n"
                "    call 4:3 accelerate.Accelerator.prepare kind=method args=[{object call=0} {module "
                "call=1}]\n"
                "  func 5:1 a.Net.forward kind=python parent_class=a.Net bases=[torch.nn.Module]\n"
                "    call 5:3 torch.exp\n"});
    EXPECT_EQ(states(p, "a.Net.forward", 0), "on:bf16/");
}

}  // namespace
}  // namespace mp::lint
