#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/text.hpp"
#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string constant_of(std::string_view expression) {
    const Unit unit = unit_of("import torch\nf(" + std::string(expression) + ")\n");
    const Call& call = unit.functions[0].calls.back();
    return std::string(call.args.back().constant.str());
}

TEST(PythonExpressions, ConstantsAreFolded) {
    EXPECT_EQ(constant_of("1e-8"), "1e-08");
    EXPECT_EQ(constant_of("-1e9"), "-1e+09");
    EXPECT_EQ(constant_of("2 ** 30"), "1073741824");
    EXPECT_EQ(constant_of("(1 << 4) + 0x10"), "32");
    EXPECT_EQ(constant_of("1_000"), "1000");
    EXPECT_EQ(constant_of("float('-inf')"), "-inf");
    EXPECT_EQ(constant_of("float(\"Infinity\")"), "inf");
    EXPECT_EQ(constant_of("1 / 0"), "");
    EXPECT_EQ(constant_of("\"16-mixed\""), "'16-mixed'");
    EXPECT_EQ(constant_of("True"), "true");
    EXPECT_EQ(constant_of("None"), "None");
    EXPECT_EQ(constant_of("torch.float16"), "torch.float16");
    EXPECT_EQ(constant_of("f'{x}'"), "");
    EXPECT_EQ(constant_of("1e400"), "inf");
    EXPECT_EQ(constant_of("3j"), "");
}

TEST(PythonExpressions, ConstantsOfTheModuleAreKnownInFunctions) {
    EXPECT_THAT(calls_of("EPS = 1e-8\ndef f(x):\n  g(x + EPS)\n", "f"), Contains("?.__add__(x, 1e-08)"));
    EXPECT_THAT(calls_of("EPS = 1e-8\nEPS = 1\ndef f(x):\n  g(x + EPS)\n", "f"),
                Contains("?.__add__(x, EPS)"));
}

// A text of a fact has at most 80 bytes, and a character of two or three bytes may begin at the last of them.
TEST(PythonExpressions, TextsAreCutBetweenCharacters) {
    for (const std::string_view character : {"é", "数", "\U0001F600"})
        for (std::size_t before = 60; before < 80; ++before)
            for (const std::string_view blank : {"", "  "}) {
                std::string argument = std::string(before, 'a') + std::string(blank) + '+';
                for (int i = 0; i < 60; ++i) argument += character;
                const Unit unit = unit_of("f(" + argument + ")\n");
                for (const Call& call : unit.functions[0].calls)
                    for (const Operand& operand : call.args) {
                        EXPECT_EQ(valid_utf8(operand.text.str()), operand.text.str()) << before;
                        EXPECT_LE(operand.text.str().size(), 80u);
                    }
            }
}

TEST(PythonExpressions, WhatIsHandedOnIsTaken) {
    const Unit unit = unit_of(
        "import torch, ext\n"
        "class Base: pass\n"
        "class Made(Base): pass\n"
        "def chosen(x): return x\n"
        "def f(x):\n"
        "    run = ext.on_gpu if x.is_cuda else ext.on_cpu\n"
        "    table = {'a': chosen, 'b': torch.relu}\n"
        "    made = Made\n"
        "    return ext.called(run(x)), table\n");
    std::vector<std::string_view> taken;
    for (const Symbol s : unit.taken) taken.push_back(s.str());
    EXPECT_EQ(taken, (std::vector<std::string_view>{"ext.on_cpu", "ext.on_gpu", "m.Made", "m.chosen"}));
}

TEST(PythonExpressions, CallsStandInTheOrderOfEvaluation) {
    EXPECT_THAT(calls_of("def f(x):\n  return a.b(x.c(), k=x.d())[x.e()]\n", "f"),
                ElementsAre("?.c(x)", "?.d(x)", "?.b(a, #0, k=#1)", "?.e(x)", "?.__getitem__(#2, #3)"));
}

TEST(PythonExpressions, OperandsFollowDefinitions) {
    constexpr auto kSource =
        "import torch\ndef f(x):\n  y = x.half()\n  z = y\n  torch.relu(z)\n"
        "  y = 1\n  torch.relu(y)\n";
    EXPECT_THAT(calls_of(kSource, "f"), ElementsAre("?.half(x)", "torch.relu(#0)", "torch.relu(1)"));
}

TEST(PythonExpressions, AttributesOfAnotherObjectAreForgotten) {
    EXPECT_THAT(calls_of("def f(o, a):\n  a.x = o.half()\n  o.use(a.x)\n  a = o\n  o.use(a.x)\n", "f"),
                ElementsAre("?.half(o)", "?.use(o, #0)", "?.use(o, a.x)"));
}

TEST(PythonExpressions, NoneIsADTypeOfItsOwn) {
    EXPECT_THAT(calls_of("import torch\ndef f(c):\n  d = torch.float16 if c else None\n"
                         "  torch.zeros(3, dtype=d)\n",
                         "f"),
                ElementsAre("torch.zeros(3, dtype=d)"));
    EXPECT_THAT(calls_of("import torch\ndef f(c):\n  s = torch.amp.GradScaler() if c else None\n"
                         "  s.update()\n",
                         "f"),
                Contains("torch.amp.GradScaler.update(#0)"));
}

TEST(PythonExpressions, SpansOfKeywordArgumentsBeginAtTheKeyword) {
    const Unit unit = unit_of("f(1, dtype = x)\n");
    const Operand& keyword = unit.functions[0].calls[0].args.back();
    EXPECT_EQ(keyword.span.column, 6u);
    EXPECT_EQ(keyword.text.str(), "x");
}

TEST(PythonExpressions, TwoDefinitionsAreNone) {
    constexpr auto kSource =
        "import torch\ndef f(x, c):\n  y = x.half()\n  if c:\n"
        "    y = x.float()\n  torch.relu(y)\n";
    EXPECT_THAT(calls_of(kSource, "f"), Contains("torch.relu(y)"));
}

TEST(PythonExpressions, WhatALoopAssignsIsNotKnownAtItsStart) {
    constexpr auto kSource =
        "import torch\ndef f(x, xs):\n  y = x.half()\n  for i in xs:\n"
        "    torch.relu(y)\n    y = x.float()\n";
    EXPECT_THAT(calls_of(kSource, "f"), Contains("torch.relu(y)"));
}

TEST(PythonExpressions, ResultsAreNamed) {
    EXPECT_THAT(facts_of("def f(self, x):\n  self.y = x.g()\n", "f"),
                ElementsAre("call ?.g kind=method args=[{other param=1 name=x}] result.shape=other "
                            "result.name=self.y"));
    EXPECT_THAT(facts_of("def f(x):\n  a, b = x.g()\n", "f"), ElementsAre(HasSubstr("result.name=\"a, b\"")));
}

TEST(PythonExpressions, UnpackingReadsItems) {
    constexpr auto kSource =
        "def g():\n  return 1, 2\ndef f(pair):\n  a, b = pair\n"
        "  c, _ = g()\n  d, *e = pair\n  a.h(b, c, d)\n";
    EXPECT_THAT(calls_of(kSource, "f"),
                ElementsAre(HasSubstr("__getitem__"), HasSubstr("__getitem__"), HasSubstr("g("),
                            HasSubstr("__getitem__"), "?.h(#0, #1, #3, d)"));
}

// Of a text split() makes no tensors.
TEST(PythonExpressions, UnpackingAnOpReadsWhatIsATensor) {
    constexpr auto kSource =
        "import torch\ndef f(x):\n  a, b = x.chunk(2)\n  v, i = x.topk(3)\n  s, t = x.split(',')\n"
        "  torch.relu(a)\n  torch.relu(v)\n  torch.relu(i)\n  torch.relu(s)\n";
    EXPECT_THAT(
        calls_of(kSource, "f"),
        ElementsAre(HasSubstr("chunk"), HasSubstr("__getitem__"), HasSubstr("__getitem__"), HasSubstr("topk"),
                    HasSubstr("__getitem__"), HasSubstr("split"), "torch.relu(#1:tensor)",
                    "torch.relu(#4:tensor)", "torch.relu(i)", "torch.relu(s)"));
}

TEST(PythonExpressions, SizesAreNumbers) {
    constexpr auto kSource = "def f(x):\n  n, c = x.shape\n  x.g(n * c, x.shape[0] * 2, x.shape[:2])\n";
    EXPECT_THAT(facts_of(kSource, "f").back(),
                AllOf(HasSubstr("{text=\"n * c\"}"), HasSubstr("{text=\"x.shape[0] * 2\"}"),
                      HasSubstr("{other call=1}")));
}

TEST(PythonExpressions, PartsOfACastAreReadFromIt) {
    EXPECT_THAT(calls_of("import torch\ndef f(x):\n  a, b = torch.chunk(x.float(), 2)\n  g(a)\n", "f"),
                ElementsAre("?.float(x)", "torch.chunk(#0, 2)", "?.__getitem__(#1, 0)",
                            "?.__getitem__(#1, 1)", "?.__call__(g, #2:tensor fp32)"));
}

TEST(PythonExpressions, ATupleIsAssignedItemByItem) {
    constexpr auto kSource =
        "import torch\ndef f(x):\n  a, b = x.half(), x.float()\n"
        "  torch.relu(a)\n  torch.relu(b)\n";
    EXPECT_THAT(calls_of(kSource, "f"),
                ElementsAre("?.half(x)", "?.float(x)", "torch.relu(#0)", "torch.relu(#1)"));
}

TEST(PythonExpressions, ParametersHaveTheTypeTheySay) {
    EXPECT_THAT(calls_of("import torch\nfrom torch import Tensor\nfrom typing import Optional\n"
                         "def f(a: torch.Tensor, b: Optional[Tensor] = None, c: 'Tensor' = 1, *d: Tensor):\n"
                         "  a.half()\n  b.half()\n  d.half()\n",
                         "f"),
                ElementsAre("torch.Tensor.half(a:tensor)", "torch.Tensor.half(b:tensor)", "?.half(d)"));
}

TEST(PythonExpressions, Displays) {
    EXPECT_THAT(calls_of("def f(o):\n  o.s({'m': o.d(), **o}, [1, *o], (2,))\n", "f"),
                ElementsAre("?.d(o)", "dict(m=#0, **=o)", "list(1, *=o)", "tuple(2)", "?.s(o, #1, #2, #3)"));
}

// The low dtype of `a` in g(**k) after the statements.
std::string alternative(const std::string& statements) {
    const Unit unit = unit_of("import torch\ndef f(o):\n  " + statements + "\n  o.g(**k)\n");
    const Operand& last = unit.functions[1].calls.back().args.back();
    EXPECT_EQ(last.keyword.str(), "a");
    return std::string(last.alternative.str());
}

TEST(PythonExpressions, AKnownDictionaryIsSpreadIntoArguments) {
    EXPECT_THAT(calls_of("def f(o):\n  k = dict(a=1, b=o)\n  o.g(o, **k, c=2)\n", "f"),
                Contains("?.g(o, o, a=1, b=o, c=2)"));
    EXPECT_THAT(calls_of("def f(o):\n  o.g(**{'a': 1})\n", "f"), Contains("?.g(o, a=1)"));
    EXPECT_THAT(calls_of("def f(o):\n  k = {}\n  k['a'] = 1\n  k['b'] = 2\n  k['a'] = o\n  o.g(**k)\n", "f"),
                Contains("?.g(o, a=o, b=2)"));
    EXPECT_EQ(alternative("k = {}\n  if o:\n    k['a'] = torch.half"), "torch.half");
    EXPECT_EQ(alternative("k = {'a': torch.float32}\n  if o:\n    k['a'] = torch.half"), "torch.half");
    EXPECT_EQ(alternative("k = {'a': torch.half}\n  k['a'] = torch.float32"), "");
    for (const char* body :
         {"k = dict(a=1)\n  k.update(o)\n  g(**k)", "k = dict(a=1)\n  h(k)\n  g(**k)",
          "k = dict(a=1)\n  k[o] = 2\n  g(**k)", "k = dict(a=1, **o)\n  g(**k)", "k = {o: 1}\n  g(**k)",
          "k = dict(a=1)\n  for i in o:\n    g(**k)\n    k['a'] = i",
          "k = dict(a=1)\n  if o:\n    k = dict(a=2)\n  g(**k)"})
        EXPECT_THAT(calls_of("def f(o):\n  " + std::string(body) + "\n", "f"),
                    Contains(AllOf(HasSubstr("__call__(g"), HasSubstr("**="))))
            << body;
}

TEST(PythonExpressions, ScalarsAndTextAreNoTensors) {
    EXPECT_THAT(calls_of("def f(x):\n  a = 1 + 2 * 3\n  b = 'x' + x\n"
                         "  c = 'a' if x is None else 'b'\n  d = x in 'y'\n",
                         "f"),
                IsEmpty());
}

TEST(PythonExpressions, OperatorsAreNamedByTheirMethod) {
    EXPECT_THAT(calls_of("def f(x, y):\n  -x @ y\n  x < y\n  x[0] = y\n  x += y\n", "f"),
                ElementsAre("?.__neg__(x)", "?.__matmul__(#0, y)", "?.__lt__(x, y)", "?.__setitem__(x, 0, y)",
                            "?.__iadd__(x, y)"));
}

TEST(PythonExpressions, FunctionsAsArguments) {
    const Unit unit = unit_of(
        "def g(): pass\nclass C:\n  def m(self): pass\n  def f(self):\n"
        "    run(g, self.m, lambda: 1)\n");
    for (const Function& f : unit.functions)
        if (f.name.str() == "m.C.f")
            EXPECT_THAT(f.calls.back().lambdas,
                        ElementsAre(Symbol("m.g"), Symbol("m.C.m"), Symbol("m.C.f.<lambda:1>")));
}

TEST(PythonExpressions, InterpolationsAreEvaluated) {
    EXPECT_THAT(calls_of("def f(x):\n  print(f'{x.item():.2f} {x.max()!r}')\n", "f"),
                ElementsAre("?.item(x)", "?.max(x)", HasSubstr("print(")));
}

TEST(PythonExpressions, SumsInLoopsAccumulate) {
    constexpr auto kSource =
        "import torch\ndef f(xs):\n"
        "  t = torch.zeros((), dtype=torch.bfloat16)\n  n = 0\n  s = 0.0\n"
        "  for x in xs:\n    t += x\n    n += 1\n    s = s + x\n"
        "    u = x.a()\n    u += x\n";
    const auto facts = facts_of(kSource, "f");
    EXPECT_THAT(facts, Contains("accumulate t dtype=bf16 shape=tensor loop_depth=1 call=2"));
    EXPECT_THAT(facts, Contains(HasSubstr("accumulate s form=assign loop_depth=1")));
    EXPECT_THAT(facts, Not(Contains(HasSubstr("accumulate n"))));
    EXPECT_THAT(facts, Not(Contains(HasSubstr("accumulate u"))));
}

// The rounds of the loops since the total began; unknown for those of a loop whose range is not known.
TEST(PythonExpressions, AnAccumulationKnowsItsRounds) {
    const auto facts = facts_of(R"py(
def f(x, n):
    a = 0
    for i in range(8):
        b = 0
        for j in range(4):
            a += x
            b += x
        for k in range(n):
            b += x
)py",
                                "f");
    EXPECT_THAT(facts, Contains(HasSubstr("accumulate a trips=32")));
    EXPECT_THAT(facts, Contains(HasSubstr("accumulate b trips=4")));
    EXPECT_THAT(facts, Contains(AllOf(HasSubstr("accumulate b"), Not(HasSubstr("trips")))));
}

TEST(PythonExpressions, SettingsOfLibraries) {
    EXPECT_THAT(facts_of("import os, torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
                         "os.environ['A'] = '1'\n"
                         "os.environ.setdefault('B', '2')\n"),
                testing::IsSupersetOf({"setting torch.backends.cuda.matmul.allow_tf32 value.constant=true",
                                       "setting os.environ.A value.shape=object value.constant='1'",
                                       "setting os.environ.B value.shape=object value.constant='2'"}));
}

TEST(PythonExpressions, ConfigurationsHandedToALibraryAreFlattened) {
    EXPECT_THAT(facts_of("import deepspeed\ncfg = {'fp16': {'enabled': True, 'loss_scale': 0}}\n"
                         "def f(m):\n  deepspeed.initialize(model=m, config=cfg)\n",
                         "f"),
                testing::IsSupersetOf({"setting fp16.enabled value.shape=other value.constant=true",
                                       "setting fp16.loss_scale value.shape=other value.constant=0"}));
}

TEST(PythonExpressions, DeepNestingEnds) {
    const std::string deep =
        "def f(x):\n  y = " + std::string(100000, '(') + "x.a()" + std::string(100000, ')') + "\n  x.b()\n";
    EXPECT_THAT(calls_of(deep, "f"), ElementsAre("?.b(x)"));
    std::string sum = "def f(x):\n  y = x";
    for (int i = 0; i < 20000; ++i) sum += " + x";
    EXPECT_EQ(functions_of(sum + "\n").size(), 2u);
}

TEST(PythonExpressions, BrokenCodeIsCountedAndTheRestIsThere) {
    const Unit unit = unit_of("def f(:\n  pass\n\ndef g(x):\n  return x.a()\n");
    EXPECT_EQ(unit.state, UnitState::partial);
    EXPECT_GT(unit.coverage.errors, 0u);
    EXPECT_EQ(unit.functions.back().name.str(), "m.g");
    EXPECT_EQ(unit.functions.back().calls.size(), 1u);
}

}  // namespace
}  // namespace mp::lint::python
