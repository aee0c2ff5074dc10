#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The arguments of the reads of items in `def f(m, e)` with this body.
std::vector<std::string> items_of(const std::string& body) {
    std::vector<std::string> items;
    for (const std::string& call : calls_of("def f(m, e):\n" + body, "f"))
        if (call.starts_with("?.__next__")) items.push_back(call);
    return items;
}

TEST(PythonLoops, TensorsOfAModuleAreReadByCalls) {
    EXPECT_THAT(items_of("  for p in m.parameters(): p.a()\n"), ElementsAre("?.__next__(#0)"));
    EXPECT_THAT(items_of("  for n, p in m.named_parameters(): p.a()\n"), ElementsAre("?.__next__(#0)"));
    EXPECT_THAT(items_of("  s = m.state_dict()\n  for k, v in s.items(): v.a()\n"),
                ElementsAre("?.__next__(#1)"));
    EXPECT_THAT(items_of("  for p in list(m.buffers()): p.a()\n"), ElementsAre("?.__next__(#0)"));
    EXPECT_THAT(items_of("  x = [p for p in m.parameters()]\n"), ElementsAre("?.__next__(#0)"));
    EXPECT_THAT(items_of("  for x in m.modules(): x.a()\n"), ElementsAre("?.__next__(#0)"));
    EXPECT_THAT(items_of("  d = {n: p for n, p in m.named_parameters()}\n  x = [p for p in d.values()]\n"),
                ElementsAre("?.__next__(#0)", "?.__next__(#3)"));
}

TEST(PythonLoops, ZippedModulesHaveOneReadEach) {
    EXPECT_THAT(items_of("  for a, b in zip(e.parameters(), m.parameters()): a.mul_(b)\n"),
                ElementsAre("?.__next__(#0)", "?.__next__(#1)"));
    EXPECT_THAT(items_of("  for i, (a, b) in enumerate(zip(e.parameters(), m.parameters())): a.mul_(b)\n"),
                ElementsAre("?.__next__(#0)", "?.__next__(#1)"));
}

TEST(PythonLoops, OtherLoopsHaveNoReads) {
    EXPECT_THAT(items_of("  for x in m.things(): x.a()\n  for k, v in e.items(): v.a()\n"), IsEmpty());
}

bool is_lost(const std::string& loop) {
    const auto facts = facts_of("import torch\ndef f(m, x):\n" + loop, "f");
    return std::ranges::any_of(facts, [](const std::string& fact) { return fact.ends_with(" unused"); });
}

TEST(PythonLoops, CastsThatNothingReadsAreUnused) {
    EXPECT_TRUE(is_lost("  for p in m.parameters():\n    p = p.float()\n"));
    EXPECT_TRUE(
        is_lost("  for p in m.parameters():\n    if x:\n      p = p.float()\n    else:\n      p.a()\n"));
    EXPECT_TRUE(is_lost("  for p in m.parameters():\n    p = p.float()\n  for p in m.parameters(): p.a()\n"));
    EXPECT_TRUE(is_lost("  for p in m.parameters():\n    p = p.float()\n  y = [p for p in x]\n"));
    EXPECT_TRUE(is_lost("  x.half()\n"));
}

TEST(PythonLoops, CastsThatAreReadAreUsed) {
    EXPECT_FALSE(is_lost("  for p in m.parameters():\n    p = p.float()\n    x.append(p)\n"));
    EXPECT_FALSE(is_lost("  for p in m.parameters():\n    p = p.float()\n  return p\n"));
    EXPECT_FALSE(is_lost("  for p in m.parameters():\n    if x:\n      p = p.float()\n    x.append(p)\n"));
    EXPECT_FALSE(is_lost("  for p in m.parameters():\n    while x.a():\n      p = p.float()\n"));
    EXPECT_FALSE(is_lost("  while x:\n    x.append(p)\n    for p in m.parameters():\n      p = p.float()\n"));
    EXPECT_FALSE(is_lost("  x = x.half()\n"));
    EXPECT_FALSE(is_lost("  for p in m.parameters():\n    p.data = p.data.float()\n"));
}

TEST(PythonLoops, AQuestionThatOnlyAMessageDependsOnIsUnused) {
    EXPECT_TRUE(is_lost("  if torch.q(): print(x)\n"));
    EXPECT_TRUE(is_lost("  if x and torch.q():\n    log.info(x)\n    print()\n"));
    EXPECT_TRUE(is_lost("  torch.q(), x\n"));
    EXPECT_TRUE(is_lost("  torch.q()\n"));
    for (const char* used :
         {"  if torch.q():\n    print(x)\n    x = 1\n", "  if torch.q(): x.go()\n",
          "  if torch.q(): print(x)\n  else: x = 1\n", "  if torch.q(x.half()): print(x)\n",
          "  if x: print(x)\n  elif torch.q(): print(x)\n", "  x.go(torch.q())\n", "  x = torch.q(), 1\n",
          "  if torch.q(): return print(x)\n"})
        EXPECT_FALSE(is_lost(used)) << used;
}

}  // namespace
}  // namespace mp::lint::python
