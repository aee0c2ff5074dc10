#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::Contains;
using testing::ElementsAre;

constexpr std::string_view kNet =
    "import torch\n"
    "from torch import nn\n"
    "class Net(nn.Module):\n"
    "  def forward(self, x):\n"
    "    return self.head(self.fc(x), self.scale)\n"
    "  def reset(self):\n"
    "    self.head = nn.Linear(1, 1)\n"
    "  def __init__(self):\n"
    "    super().__init__()\n"
    "    self.fc = nn.Linear(2, 2)\n"
    "    self.head = nn.Conv2d(1, 1, 1)\n"
    "    self.scale = torch.ones(1, dtype=torch.float16)\n";

TEST(PythonClasses, AttributesAreKnownToAllMethods) {
    EXPECT_THAT(calls_of(kNet, "Net.forward"),
                ElementsAre("torch.nn.Linear.forward(self.fc:module, x)",
                            "torch.nn.Module.forward(self.head:module, #0:tensor, self.scale:tensor fp16)"));
}

// A class whose `setup` runs the statements and then sets the attribute that `step` uses.
std::vector<std::string> step_after(const std::string& statements, const std::string& value = "o") {
    return calls_of(
        "import torch\nclass T:\n  def step(self):\n    self.opt.step()\n"
        "  def setup(self, net, given):\n" +
            statements + "    self.opt = " + value + "\n",
        "T.step");
}

TEST(PythonClasses, AttributesOfOtherMethodsHoldWhatTheirLocalsDo) {
    EXPECT_THAT(step_after("    o = torch.optim.SGD(net)\n"), ElementsAre("torch.optim.SGD.step(self.opt)"));
}

TEST(PythonClasses, ALocalThatIsBoundTwiceOrAParameterIsNotKnown) {
    const auto unknown = ElementsAre("?.step(self.opt)");
    EXPECT_THAT(step_after("    o = torch.optim.SGD(net)\n    o = given(o)\n"), unknown);
    EXPECT_THAT(step_after("    o = torch.optim.SGD(net)\n    for o in given: pass\n"), unknown);
    EXPECT_THAT(step_after("    if net:\n      given = torch.optim.SGD(net)\n", "given"), unknown);
}

// The attributes that __init__ stores from its parameters: "self.x 1", or "self.x #0" for the result of a
// call.
std::vector<std::string> kept(const std::string& statements, const std::string& more = "") {
    const Unit unit =
        unit_of("import torch\nclass T:\n  def __init__(self, net, device, on=True):\n" + statements + more);
    std::vector<std::string> out;
    for (const Function& f : unit.functions)
        for (const Setting& s : f.settings)
            out.push_back(std::string(s.key.str()) + (s.value.call == kNone
                                                          ? " " + std::to_string(s.value.param)
                                                          : " #" + std::to_string(s.value.call)));
    return out;
}

TEST(PythonClasses, InitSaysWhichParametersItKeeps) {
    EXPECT_THAT(kept("    self.net = net\n"), ElementsAre("self.net 1"));
    EXPECT_THAT(kept("    self.net = net.to(device)\n"), ElementsAre("self.net #0"));
    EXPECT_THAT(kept("    net = net.to(device)\n    net.eval()\n    self.net = net\n"),
                ElementsAre("self.net #0"));
    EXPECT_THAT(kept("    self.net = torch.nn.Linear(2, 2)\n"), testing::IsEmpty());
    EXPECT_THAT(kept("    self.net = net[0]\n"), ElementsAre("self.net #0")) << "an item, not the list";
    EXPECT_THAT(kept("    self.both = self\n"), testing::IsEmpty());
    EXPECT_THAT(kept("    self.n = len(net)\n    self.now = torch.rand(3)\n"),
                ElementsAre("self.n #0", "self.now #1"));
}

TEST(PythonClasses, InitKeepsWhatFunctionsOfTheProgramReturn) {
    const std::string more = "def build():\n  return None\n";
    EXPECT_THAT(kept("    self.net = build()\n", more), ElementsAre("self.net #0"));
    EXPECT_THAT(kept("    self.net = build().to(device)\n", more), ElementsAre("self.net #1"));
}

TEST(PythonClasses, InitSaysItInTheOrderOfTheSource) {
    const Symbol later("kept_second"), earlier("kept_first");
    EXPECT_LT(later, earlier) << "ids, which must not show";
    EXPECT_THAT(kept("    self.kept_first = net\n    self.kept_second = device\n"),
                ElementsAre("self.kept_first 1", "self.kept_second 2"));
}

TEST(PythonClasses, InitKeepsNothingThatMayBeSomethingElseLater) {
    EXPECT_THAT(kept("    self.net = net\n    if on:\n      self.net = device\n"), testing::IsEmpty());
    EXPECT_THAT(kept("    self.net = net\n", "  def swap(self, other):\n    self.net = other\n"),
                testing::IsEmpty());
    EXPECT_THAT(kept("    self.net = net\n", "  def step(self):\n    self.net += 1\n"), testing::IsEmpty());
}

TEST(PythonClasses, ALocalOfAMethodHidesTheNameOfTheModule) {
    constexpr auto kSource =
        "import torch\ndtype = torch.float32\nclass T:\n"
        "  def setup(self):\n    dtype = torch.float16\n"
        "    self.t = torch.zeros(3, dtype=dtype)\n"
        "  def step(self):\n    self.t.sum()\n";
    EXPECT_THAT(calls_of(kSource, "T.step"), ElementsAre("torch.Tensor.sum(self.t:tensor)"));
}

TEST(PythonClasses, MethodsSayWhoTheyBelongTo) {
    const Unit unit = unit_of(kNet);
    const Function* forward = nullptr;
    for (const Function& f : unit.functions)
        if (f.name.str() == "m.Net.forward") forward = &f;
    ASSERT_TRUE(forward);
    EXPECT_EQ(forward->parent_class.str(), "m.Net");
    EXPECT_THAT(forward->bases, ElementsAre(Symbol("torch.nn.Module")));
    EXPECT_THAT(forward->overrides, ElementsAre(Symbol("torch.nn.Module.forward")));
}

TEST(PythonClasses, SuperIsTheBase) {
    constexpr auto kSource =
        "from lib import Base\nclass A(Base):\n  def f(self):\n"
        "    super().f(1)\n"
        "class B(A):\n  def f(self):\n    super(B, self).f(2)\n";
    EXPECT_THAT(calls_of(kSource, "A.f"), ElementsAre("lib.Base.f(super(), 1)"));
    EXPECT_THAT(calls_of(kSource, "B.f"), ElementsAre("m.A.f(super(B, self), 2)"));
}

TEST(PythonClasses, ObjectsKeepTheirClass) {
    constexpr auto kSource =
        "import torch\n"
        "class Net(torch.nn.Module):\n  def loss(self, x): pass\n"
        "  def forward(self, x): pass\n"
        "def f(x):\n  net = Net().cuda()\n  net(x)\n  net.loss(x)\n"
        "  net.half()\n";
    EXPECT_THAT(calls_of(kSource, "f"),
                ElementsAre("m.Net()", "torch.nn.Module.cuda(#0:module)", "m.Net.forward(#1:module, x)",
                            "m.Net.loss(#1:module, x)", "torch.nn.Module.half(#1:module)"));
}

TEST(PythonClasses, ModulesAreCastInPlace) {
    constexpr auto kSource =
        "from torch import nn\ndef f(x):\n  net = nn.Linear(1, 1)\n"
        "  net.half()\n  net(x)\n";
    EXPECT_THAT(calls_of(kSource, "f"), Contains("torch.nn.Linear.forward(#0:module fp16, x)"));
}

TEST(PythonClasses, APropertyIsCalled) {
    constexpr auto kSource =
        "class C:\n  @property\n  def ctx(self): pass\n"
        "  def f(self, o):\n    o.g(self.ctx)\n";
    EXPECT_THAT(calls_of(kSource, "C.f"), ElementsAre("m.C.ctx(self)", "?.g(o, #0)"));
}

TEST(PythonClasses, FirstParametersOfOtherMethods) {
    constexpr auto kSource =
        "class C:\n  def g(self): pass\n  @staticmethod\n  def s(x):\n"
        "    x.g()\n"
        "  @classmethod\n  def c(cls):\n    return cls()\n";
    EXPECT_THAT(calls_of(kSource, "C.s"), ElementsAre("?.g(x)"));
    EXPECT_THAT(calls_of(kSource, "C.c"), ElementsAre("m.C()"));
}

TEST(PythonClasses, SettersAndOverloadsAreNotTheMethod) {
    EXPECT_THAT(functions_of("class C:\n  @property\n  def x(self): pass\n  @x.setter\n"
                             "  def x(self, v): pass\n"
                             "  @overload\n  def y(self): ...\n  def y(self): pass\n"),
                ElementsAre("m.<module>", "m.C.x", "m.C.x.setter", "m.C.y"));
}

TEST(PythonClasses, InheritedFunctionsOfAClassHaveNoBodyHere) {
    const Unit unit = unit_of(
        "import torch\nclass F(torch.autograd.Function):\n  pass\n"
        "F.apply(1)\n");
    const Call& call = unit.functions[0].calls.back();
    EXPECT_EQ(call.name.str(), "m.F.apply");
    EXPECT_TRUE(call.callee.empty());
}

TEST(PythonClasses, ParametersFollowTheModule) {
    EXPECT_THAT(calls_of("import torch\nfrom torch import nn\nclass C(nn.Module):\n"
                         "  def __init__(self):\n"
                         "    self.w = nn.Parameter(torch.zeros(3))\n    self.s = torch.zeros(3)\n"
                         "  def f(self):\n    self.w.sum()\n    self.s.sum()\n",
                         "C.f"),
                ElementsAre("torch.Tensor.sum(self.w:tensor)", "torch.Tensor.sum(self.s:tensor fp32)"));
}

TEST(PythonClasses, BuffersAreAttributesThatFollowTheModule) {
    EXPECT_THAT(calls_of("import torch\nclass C(torch.nn.Module):\n  def __init__(self):\n"
                         "    self.register_buffer('f', torch.arange(3.0))\n"
                         "  def g(self):\n    self.f.sum()\n",
                         "C.g"),
                ElementsAre("torch.Tensor.sum(self.f:tensor)"));
}

TEST(PythonClasses, NoneIsNoOtherValue) {
    EXPECT_THAT(calls_of("import torch\nclass C:\n  def __init__(self):\n    self.s = None\n"
                         "  def start(self):\n    self.s = torch.amp.GradScaler()\n"
                         "  def g(self):\n    self.s.update()\n",
                         "C.g"),
                ElementsAre("torch.amp.GradScaler.update(self.s)"));
}

TEST(PythonClasses, AnAttributeOfOneBranchIsWhatItIs) {
    EXPECT_THAT(calls_of("import torch\nclass C:\n  def __init__(self, amp):\n    if amp:\n"
                         "      self.s = torch.amp.GradScaler()\n"
                         "  def g(self):\n    self.s.update()\n",
                         "C.g"),
                ElementsAre("torch.amp.GradScaler.update(self.s)"));
}

TEST(PythonClasses, ClassBodiesRunOnce) {
    constexpr auto kSource =
        "import torch\nclass C:\n  half = torch.float16\n"
        "  w = torch.zeros(3)\n"
        "  def f(self, x):\n    x.to(self.half)\n";
    EXPECT_THAT(calls_of(kSource, "C.<class>"), ElementsAre("torch.zeros(3)"));
    EXPECT_THAT(calls_of(kSource, "C.f"), ElementsAre("?.to(x, torch.float16)"));
}

TEST(PythonClasses, ANameOfAFieldWithADefaultIsAnother) {
    const Unit unit = unit_of(
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n  mode: str = 'bf16'\n"
        "class Runner:\n  def __init__(self, config: Config):\n    self.config = config\n"
        "  def run(self):\n    mode = self.config.mode\n    if mode:\n      use()\n");
    ASSERT_EQ(unit.functions.back().aliases.size(), 1u) << "a configuration may give it another value";
    EXPECT_EQ(unit.functions.back().aliases[0].of.str(), "self.config.mode");
    const Unit constant = unit_of("MODE = 'bf16'\n\ndef run():\n  mode = MODE\n  if mode:\n    use()\n");
    EXPECT_TRUE(constant.functions.back().aliases.empty());
}

}  // namespace
}  // namespace mp::lint::python
