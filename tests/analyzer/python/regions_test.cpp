#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

std::string with_torch(std::string_view rest) {
    return "import torch\nfrom contextlib import *\n"
           "from contextlib import contextmanager, nullcontext, ExitStack\n" +
           std::string(rest);
}

TEST(PythonRegions, AWithItemIsEnteredAndLeft) {
    EXPECT_THAT(calls_of(with_torch("with torch.autocast('cuda', enabled=False):\n"
                                    "  torch.relu(1)\n")),
                ElementsAre("torch.autocast('cuda', enabled=false)",
                            "torch.autocast.__enter__(#0, 'cuda', enabled=false)", "torch.relu(1)",
                            "torch.autocast.__exit__(#1)"));
}

TEST(PythonRegions, SeveralItemsAreLeftInReverse) {
    constexpr auto kExpected = "torch.no_grad.__exit__(#3)";
    for (const std::string_view source :
         {"with torch.autocast('cuda'), torch.no_grad():\n  pass\n",
          "with (torch.autocast('cuda'), torch.no_grad()):\n  pass\n",
          "with (\n    torch.autocast('cuda') as a,\n    torch.no_grad() as b,\n):\n  pass\n"}) {
        const auto calls = calls_of(with_torch(source));
        ASSERT_EQ(calls.size(), 6u) << source;
        EXPECT_EQ(calls[4], kExpected) << source;
        EXPECT_EQ(calls[5], "torch.autocast.__exit__(#1)") << source;
    }
}

TEST(PythonRegions, EveryWayOutLeaves) {
    EXPECT_THAT(facts_of(with_torch("def f(c, x):\n  with torch.no_grad():\n    if c:\n"
                                    "      return x\n"),
                         "f"),
                IsSupersetOf({"call torch.no_grad.__exit__ kind=method args=[{object call=1}] "
                              "result.shape=other block=2",
                              "call torch.no_grad.__exit__ kind=method args=[{object call=1}] "
                              "result.shape=other block=1"}));
}

TEST(PythonRegions, AnExceptionLeavesOnItsWayToTheHandler) {
    const Unit unit =
        unit_of(with_torch("def f(x):\n  try:\n    with torch.no_grad():\n"
                           "      x.a()\n  except E:\n    x.b()\n"));
    int exits = 0;
    for (const Call& call : unit.functions.back().calls) exits += call.name.str().ends_with("__exit__");
    EXPECT_EQ(exits, 2);
}

TEST(PythonRegions, AVariableHoldsAContext) {
    EXPECT_THAT(
        calls_of(
            with_torch("def f(amp):\n"
                       "  ctx = torch.autocast('cuda') if amp else nullcontext()\n  with ctx:\n    pass\n"),
            "f"),
        ElementsAre("torch.autocast('cuda')", "contextlib.nullcontext()",
                    "torch.autocast.__enter__(#0, 'cuda', <when>=amp)", "torch.autocast.__exit__(#2)"));
    EXPECT_THAT(calls_of(with_torch("def f(cpu):\n  if cpu:\n    ctx = nullcontext()\n  else:\n"
                                    "    ctx = torch.autocast('cuda')\n  with ctx:\n    pass\n"),
                         "f"),
                Contains("torch.autocast.__enter__(#1, 'cuda', <when>=false)"));
}

TEST(PythonRegions, AVariableHoldsAFunctionThatMakesAContextOnOneBranch) {
    const auto held = [](std::string_view statements) {
        const Unit unit = unit_of(with_torch("from functools import partial\ndef f(amp):\n" +
                                             std::string(statements) + "  with g():\n    pass\n"));
        for (const Call& call : unit.functions.back().calls)
            if (call.name.str() == "?.__call__")
                return std::string(call.args[0].alternative.str()) +
                       (call.args[0].call == kNone ? "" : " made");
        return std::string("not called");
    };
    EXPECT_EQ(held("  g = torch.cuda.amp.autocast if amp else suppress\n"), "torch.cuda.amp.autocast");
    EXPECT_EQ(held("  g = nullcontext\n  if amp:\n    g = partial(torch.autocast, 'cuda')\n"),
              "torch.autocast made");
    EXPECT_EQ(held("  g = amp.region if amp else torch.autocast\n"), "");
}

TEST(PythonRegions, TheConditionOfTheBranchIsThatOfTheRegion) {
    EXPECT_THAT(calls_of(with_torch("def f(amp):\n  g = torch.autocast if amp else nullcontext\n"
                                    "  with g('cuda'):\n    pass\n"),
                         "f"),
                Contains("?.__call__.__enter__(#0, 'cuda', <when>=amp)"));
    EXPECT_THAT(
        calls_of(with_torch("def f(cpu):\n  g = suppress\n  if not cpu:\n    g = torch.cuda.amp.autocast\n"
                            "  with g():\n    pass\n"),
                 "f"),
        Contains("?.__call__.__enter__(#0, <when>=false)"));
}

TEST(PythonRegions, APartialOfAutocastDecorates) {
    EXPECT_THAT(calls_of(with_torch("from functools import partial\n"
                                    "off = partial(torch.autocast, 'cuda', enabled=False)\n"
                                    "@off()\ndef f(x):\n  torch.relu(x)\n"),
                         "f"),
                ElementsAre("?.__call__(off)", "?.__call__.__enter__(#0)", "torch.relu(x)",
                            "?.__call__.__exit__(#1)"));
}

TEST(PythonRegions, AContextOfTheModuleIsKnownInFunctions) {
    EXPECT_THAT(
        calls_of(with_torch("ctx = nullcontext() if cpu else torch.autocast('cuda')\n"
                            "def f():\n  with ctx:\n    pass\n"),
                 "f"),
        ElementsAre("torch.autocast.__enter__(ctx, 'cuda', <when>=false)", "torch.autocast.__exit__(#0)"));
}

TEST(PythonRegions, AnAttributeHoldsAContext) {
    EXPECT_THAT(
        calls_of(with_torch("class C:\n  def __init__(self, on):\n"
                            "    self.ctx = torch.autocast('cuda', enabled=on)\n"
                            "  def f(self):\n    with self.ctx:\n      pass\n"),
                 "C.f"),
        ElementsAre("torch.autocast.__enter__(self.ctx, 'cuda', enabled=on)", "torch.autocast.__exit__(#0)"));
}

TEST(PythonRegions, AnAttributeHoldsOneOfTwoContexts) {
    EXPECT_THAT(
        calls_of(with_torch("class C:\n  def __init__(self, on):\n    if on:\n"
                            "      self.ctx = torch.autocast('cuda')\n    else:\n"
                            "      self.ctx = nullcontext()\n"
                            "  def f(self):\n    with self.ctx:\n      pass\n"),
                 "C.f"),
        ElementsAre("torch.autocast.__enter__(self.ctx, 'cuda', <when>=on)", "torch.autocast.__exit__(#0)"));
}

TEST(PythonRegions, AStackOfContexts) {
    EXPECT_THAT(calls_of(with_torch("with ExitStack() as stack:\n"
                                    "  stack.enter_context(torch.no_grad())\n  torch.relu(1)\n")),
                IsSupersetOf({"torch.no_grad.__enter__(#2)", "torch.relu(1)", "torch.no_grad.__exit__(#4)",
                              "contextlib.ExitStack.__exit__(#1)"}));
}

TEST(PythonRegions, EnteredByHand) {
    EXPECT_THAT(calls_of(with_torch("c = torch.autocast('cuda')\nc.__enter__()\ntorch.relu(1)\n"
                                    "c.__exit__(None, None, None)\n")),
                ElementsAre("torch.autocast('cuda')", "torch.autocast.__enter__(#0, 'cuda')", "torch.relu(1)",
                            "torch.autocast.__exit__(#1, None, None, None)"));
}

TEST(PythonRegions, DecoratorsAreAroundTheBody) {
    EXPECT_THAT(calls_of(with_torch("@torch.autocast('cuda')\n@torch.no_grad\ndef f(x):\n"
                                    "  return x.a()\n"),
                         "f"),
                ElementsAre("torch.autocast('cuda')", "torch.autocast.__enter__(#0, 'cuda')",
                            "torch.no_grad()", "torch.no_grad.__enter__(#2)", "?.a(x)",
                            "torch.no_grad.__exit__(#3)", "torch.autocast.__exit__(#1)"));
    const Unit unit =
        unit_of(with_torch("@torch.amp.custom_fwd(device_type=\"cuda\")\n"
                           "@staticmethod\ndef f(x): pass\n"));
    EXPECT_THAT(unit.functions.back().annotations,
                ElementsAre(Symbol("torch.amp.custom_fwd(device_type='cuda')"), Symbol("staticmethod")));
}

TEST(PythonRegions, GeneratorsAreSplitAtTheirYield) {
    const std::string source = with_torch(
        "@contextmanager\ndef region(on):\n  a = on.before()\n"
        "  with torch.autocast('cuda', enabled=on):\n    yield\n  a.after()\n"
        "def f():\n  with region(True):\n    pass\n"
        "@region(False)\ndef g(): pass\n");
    EXPECT_THAT(calls_of(source, "region.__enter__"),
                ElementsAre("?.before(on)", "torch.autocast('cuda', enabled=on)",
                            "torch.autocast.__enter__(#1, 'cuda', enabled=on)"));
    EXPECT_THAT(calls_of(source, "region.__exit__"),
                ElementsAre(HasSubstr("torch.autocast.__exit__("), HasSubstr("?.after(")));
    EXPECT_THAT(calls_of(source, "f"),
                ElementsAre("m.region(true)", "m.region.__enter__(#0, true)", "m.region.__exit__(#1)"));
    EXPECT_THAT(calls_of(source, "g"),
                ElementsAre("m.region(false)", "m.region.__enter__(#0, false)", "m.region.__exit__(#1)"));
}

TEST(PythonRegions, AMethodThatGivesAContext) {
    EXPECT_THAT(
        calls_of(with_torch(
                     "class C:\n  def amp(self):\n"
                     "    return torch.autocast('cuda')\n  def f(self):\n    with self.amp():\n      pass\n"),
                 "C.f"),
        ElementsAre("m.C.amp(self)", "m.C.amp.__enter__(#0)", "m.C.amp.__exit__(#1)"));
}

TEST(PythonRegions, AProjectGuardIsAClass) {
    const Unit unit = unit_of(
        "class Guard:\n  def __enter__(self): pass\n"
        "  def __exit__(self, *a): pass\nwith Guard() as g:\n  pass\n");
    const std::vector<Call>& calls = unit.functions[0].calls;
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[1].callee.str(), "m.Guard.__enter__");
    EXPECT_EQ(calls[2].callee.str(), "m.Guard.__exit__");
}

}  // namespace
}  // namespace mp::lint::python
