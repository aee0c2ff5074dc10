#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(PythonNames, ImportsAndAliasesResolve) {
    EXPECT_THAT(calls_of("import torch\n"
                         "import torch.nn.functional as F\n"
                         "from torch.cuda.amp import autocast as ac, GradScaler\n"
                         "from torch import nn\n"
                         "torch.relu(1)\nF.relu(2)\nac()\nGradScaler()\nnn.functional.relu(3)\n"),
                ElementsAre("torch.relu(1)", "torch.nn.functional.relu(2)", "torch.cuda.amp.autocast()",
                            "torch.cuda.amp.GradScaler()", "torch.nn.functional.relu(3)"));
}

TEST(PythonNames, ImportsBelowAName) {
    EXPECT_THAT(calls_of("import torch.optim\nimport torch.distributed as dist\n"
                         "torch.optim.SGD(1)\ndist.all_reduce(2)\n"),
                ElementsAre("torch.optim.SGD(1)", "torch.distributed.all_reduce(2)"));
}

TEST(PythonNames, FallbackImportsMeanTheFirst) {
    constexpr auto kSource =
        "try:\n  from torch.amp import autocast\nexcept ImportError:\n"
        "  from torch.cuda.amp import autocast\n"
        "def f():\n  autocast('cuda')\n";
    EXPECT_THAT(calls_of(kSource, "f"), ElementsAre("torch.amp.autocast('cuda')"));
    constexpr auto kOrNone =
        "try:\n  from apex import amp\nexcept ImportError:\n  amp = None\n"
        "def f():\n  amp.initialize(1)\n";
    EXPECT_THAT(calls_of(kOrNone, "f"), ElementsAre("apex.amp.initialize(1)"));
}

TEST(PythonNames, RelativeImportsAreOfThePackage) {
    const auto calls_in = [](std::string path, std::string module) {
        const Unit unit = extract({path, module,
                                   "from .util import f\nfrom ..b import g\nf()\n"
                                   "g()\n"});
        std::vector<std::string> names;
        for (const Call& call : unit.functions[0].calls) names.emplace_back(call.callee.str());
        return names;
    };
    EXPECT_THAT(calls_in("/r/a/x/mod.py", "a.x.mod"), ElementsAre("a.x.util.f", "a.b.g"));
    EXPECT_THAT(calls_in("/r/a/x/__init__.py", "a.x"), ElementsAre("a.x.util.f", "a.b.g"));
}

TEST(PythonNames, ImportsOfProjectCodeAreReExports) {
    const auto facts = facts_of(
        "from .net import Net as N\nfrom .ops import *\n"
        "from torch import nn\nimport os\n");
    EXPECT_THAT(facts,
                ElementsAre("type net.Net alias=m.N", "type ops.* alias=m.*", "type torch.nn alias=m.nn"));
}

TEST(PythonNames, ALocalNameHidesTheLibrary) {
    EXPECT_THAT(calls_of("import torch\ndef f(torch):\n  torch.relu(1)\n", "f"),
                ElementsAre("?.relu(torch, 1)"));
    EXPECT_THAT(calls_of("import torch\ndef f():\n  torch = g()\n  torch.relu(1)\n", "f"),
                Contains("?.relu(#0, 1)"));
}

TEST(PythonNames, ImportsInsideFunctionsStayThere) {
    constexpr auto kSource = "def f():\n  import torch as t\n  t.relu(1)\ndef g():\n  t.relu(2)\n";
    EXPECT_THAT(calls_of(kSource, "f"), ElementsAre("torch.relu(1)"));
    EXPECT_THAT(calls_of(kSource, "g"), ElementsAre("?.relu(t, 2)"));
}

TEST(PythonNames, FunctionsAreNamedByTheirScope) {
    EXPECT_THAT(functions_of("class C:\n  def m(self):\n    def inner(): pass\n"
                             "    g(lambda x: x)\n"),
                ElementsAre("m.<module>", "m.C.m", "m.C.m.inner", "m.C.m.<lambda:1>"));
}

TEST(PythonNames, TheOneStarImportGivesTheOtherNames) {
    EXPECT_THAT(calls_of("from lib.ops import *\nfuse(1)\nlen(2)\n"),
                ElementsAre("lib.ops.fuse(1)", "len(2)"));
    EXPECT_THAT(calls_of("from lib import *\nfrom b import *\nfuse(1)\n"),
                ElementsAre("?.__call__(fuse, 1)"));
}

TEST(PythonNames, NestedFunctionsSeeWhatIsAroundThem) {
    constexpr auto kSource =
        "import torch\ndef f():\n  s = torch.amp.GradScaler()\n  def g():\n"
        "    s.update()\n"
        "  return lambda: s.step(1)\n";
    EXPECT_THAT(calls_of(kSource, "f.g"), ElementsAre("torch.amp.GradScaler.update(s)"));
    EXPECT_THAT(calls_of(kSource, "f.<lambda:1>"), ElementsAre("torch.amp.GradScaler.step(s, 1)"));
}

TEST(PythonNames, GlobalNamesBelongToTheModule) {
    constexpr auto kSource =
        "import torch\nctx = torch.no_grad()\n"
        "def f():\n  global ctx\n  ctx = 1\n"
        "def g():\n  with ctx:\n    pass\n";
    EXPECT_THAT(calls_of(kSource, "g"), ElementsAre("?.__enter__(ctx)", "?.__exit__(#0)"));
}

TEST(PythonNames, ComprehensionsHaveTheirOwnNames) {
    constexpr auto kSource =
        "import torch\ndef f(xs):\n"
        "  ys = [torch.relu(torch) for torch in xs]\n"
        "  return torch.relu(ys)\n";
    EXPECT_THAT(calls_of(kSource, "f"), ElementsAre("?.relu(torch, torch)", "list(#0)", "torch.relu(#1)"));
}

// "name constant" of each definition of the function.
std::vector<std::string> definitions_of(std::string_view source, std::string_view function) {
    std::vector<std::string> found;
    for (const Function& f : unit_of(source).functions)
        if (f.name.str() == function)
            for (const Definition& d : f.definitions)
                found.push_back(std::string(d.name.str()) + " " + std::string(d.value.constant.str()));
    return found;
}

TEST(PythonNames, AModuleDefinesWhatItBindsOnce) {
    EXPECT_THAT(definitions_of("EPS = 1e-8\nN = 1\nN = 2\nif EPS:\n  W = 1\nelse:\n  W = 1\n", "m.<module>"),
                ElementsAre("m.EPS 1e-08", "m.W 1"));
    EXPECT_THAT(definitions_of("class C:\n  eps = 1e-3\n", "m.C.<class>"), ElementsAre("m.C.eps 0.001"));
}

TEST(PythonNames, AnOperandRefersToWhatIsDefinedElsewhere) {
    const Unit unit = unit_of("from settings import EPS\ndef f(cfg):\n  g(EPS, cfg.eps)\n");
    const std::vector<Operand>& args = unit.functions.back().calls.back().args;
    ASSERT_EQ(args.size(), 3U);
    EXPECT_EQ(args[1].refers.str(), "settings.EPS");
    EXPECT_EQ(args[2].refers.str(), "#0.eps");
}

TEST(PythonNames, CyclicInheritanceEnds) {
    constexpr auto kSource = "class A(B):\n  pass\nclass B(A):\n  def f(self):\n    self.g()\n";
    EXPECT_THAT(calls_of(kSource, "B.f"), ElementsAre("m.B.g(self)"));
}

}  // namespace
}  // namespace mp::lint::python
