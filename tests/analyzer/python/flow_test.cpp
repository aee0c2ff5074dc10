#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Names of calls by block, and the edges: "0: a -> 1 2".
std::vector<std::string> flow_of(std::string_view body) {
    std::string source = "def f(amp, xs, obj):\n";
    for (std::size_t at = 0; at < body.size();) {
        const std::size_t end = body.find('\n', at);
        source += "  " + std::string(body.substr(at, end - at)) + "\n";
        at = end + 1;
    }
    const Unit unit = unit_of(source);
    const Function& f = unit.functions.back();
    std::vector<std::string> blocks(std::max<std::size_t>(f.flow.size(), 1));
    for (const Call& call : f.calls) {
        std::string_view name = call.args.empty() ? call.name.str() : call.args[0].name.str();
        if (name == "obj") name = call.name.str().substr(2);
        blocks[call.block] += std::string(name) + " ";
    }
    for (std::size_t b = 0; b < f.flow.size(); ++b) {
        std::string edges;
        for (const Edge& edge : f.flow[b].to) {
            edges += edge.raises ? " !" : " ";
            edges += std::to_string(edge.to);
            if (!edge.condition.empty()) edges += edge.when ? "+" : "-";
        }
        blocks[b] += "->" + edges + (f.flow[b].leaves ? " out" : "");
    }
    return blocks;
}

TEST(PythonFlow, StraightCodeHasNoBlocks) { EXPECT_THAT(flow_of("obj.a()\nobj.b()\n"), ElementsAre("a b ")); }

TEST(PythonFlow, BranchesAndTheirEnd) {
    EXPECT_THAT(flow_of("if amp:\n  obj.a()\nelse:\n  obj.b()\nobj.c()\n"),
                ElementsAre("-> 2+ 3-", "c -> out", "a -> 1", "b -> 1"));
}

TEST(PythonFlow, ConditionsThatCannotChangeAreNamed) {
    EXPECT_THAT(facts_of("def f(amp):\n  if not amp:\n    pass\n", "f")[0],
                "block to=[{3 condition=amp} {2 condition=amp when=false}]");
    EXPECT_THAT(facts_of("def f(s):\n  if s is not None and s.on:\n    pass\n", "f"),
                Contains(HasSubstr("{4 condition=\"s is None\" when=false} {3 condition=\"s is None\"}")));
    EXPECT_THAT(facts_of("def f(args):\n  if args.fp16:\n    pass\n", "f")[0],
                HasSubstr("condition=args.fp16"));
    EXPECT_THAT(facts_of("def f(c):\n  if c['a']['b'] and c.get('d', 0):\n    pass\n", "f")[0],
                HasSubstr("condition=\"c['a']['b']\""));
    EXPECT_THAT(facts_of("try:\n  import m\n  HAS = True\nexcept ImportError:\n  HAS = False\n"
                         "def f():\n  if HAS:\n    pass\n",
                         "f")[0],
                HasSubstr("condition=HAS"));
}

TEST(PythonFlow, ANameThatABranchMakesNoneIsToldOnTheWay) {
    EXPECT_THAT(flow_of("s = make() if amp else None\nobj.c()\n"),
                ElementsAre("-> 1+ 2-", "make -> 4-", "-> 5+", "c -> out", "-> 3+", "-> 3-"));
    EXPECT_THAT(flow_of("s = (make() if amp else None)\n"), Contains("make -> 4-"));
    EXPECT_THAT(flow_of("s = make() if amp else None\ns = 1\n"),
                ElementsAre("-> 1+ 2-", "make -> 3", "-> 3", "-> out"));
}

TEST(PythonFlow, ConditionsThatMayChangeAreNot) {
    for (const std::string_view source :
         {"def f(n):\n  n -= 1\n  if n:\n    pass\n", "def f(g):\n  if g():\n    pass\n",
          "def f(xs):\n  for x in xs:\n    if x: pass\n", "def f(x):\n  while x[0]:\n    pass\n",
          "def f(c, k):\n  if c[k]: pass\n", "def f(c, k):\n  if c[f'{k}']: pass\n",
          "def f(c, k):\n  if c['a']: pass\n  c[k] = 1\n", "def f(c):\n  if c['a']: pass\n  c['a'] += 1\n",
          "def f(q):\n  if q.get(): pass\n",
          "class C:\n  def f(self):\n    if self.on:\n      pass\n    self.on = 1\n"})
        EXPECT_THAT(facts_of(source, source.starts_with("class") ? "C.f" : "f"),
                    Not(Contains(HasSubstr("condition"))))
            << source;
}

TEST(PythonFlow, AnAttributeThatAnotherMethodSetsIsFixedInThisOne) {
    EXPECT_THAT(facts_of("class C:\n  def build(self):\n    self.s = make()\n  def f(self):\n"
                         "    if self.s is not None:\n      pass\n",
                         "C.f"),
                Contains(HasSubstr("condition=\"self.s is None\"")));
}

TEST(PythonFlow, AnAttributeThatIsSetOnceAboveIsFixed) {
    const auto conditions_of = [](const std::string& body) {
        std::string source = "class C:\n  def f(self, amp):\n";
        return facts_of(source + body, "C.f");
    };
    const std::string use = "    if self.on:\n      pass\n", set = "    self.on = bool(amp)\n";
    const auto is_named = Contains(HasSubstr("condition=self.on"));
    EXPECT_THAT(conditions_of(set + use), is_named);
    EXPECT_THAT(conditions_of(set + "    self.s = make() if self.on else None\n"), is_named);
    for (const std::string& body :
         {use + set, set + set + use, "    if amp:\n      self.on = 1\n" + use,
          set + use + "    del self.on\n", set + "    for self.on in amp:\n      pass\n" + use,
          set + "    x, self.on = amp\n" + use})
        EXPECT_THAT(conditions_of(body), Not(is_named)) << body;
}

TEST(PythonFlow, LoopsGoBack) {
    EXPECT_THAT(flow_of("for x in xs:\n  obj.a()\n  if amp:\n    break\n  obj.b()\nelse:\n"
                        "  obj.c()\nobj.d()\n"),
                ElementsAre("-> 1", "-> 2 3", "a -> 6+ 7-", "c -> 4", "d -> out", "b -> 1", "-> 4", "-> 5"));
    EXPECT_THAT(flow_of("while True:\n  obj.a()\n  if amp:\n    continue\n  return obj.b()\n"),
                ElementsAre("-> 1", "-> 2", "a -> 6+ 7-", "->", "->", "b -> out", "-> 1", "-> 5"));
}

TEST(PythonFlow, CallsInATryLeadToItsHandlers) {
    EXPECT_THAT(flow_of("try:\n  obj.a()\nexcept ValueError:\n  obj.b()\nobj.c()\n"),
                ElementsAre("-> !2 3", "c -> out", "-> 4 out", "a -> !2 1", "b -> 1"));
}

TEST(PythonFlow, FinallyRunsOnEveryWayOut) {
    // One body; from its end to the code behind, and out of the function.
    const auto blocks = flow_of(
        "try:\n  if amp:\n    return\n  obj.a()\nfinally:\n  obj.b()\n"
        "obj.c()\n");
    int finally_blocks = 0;
    for (const std::string& block : blocks) finally_blocks += block.starts_with("b ");
    EXPECT_EQ(finally_blocks, 1);
    EXPECT_THAT(blocks, Contains("c -> out"));
    EXPECT_THAT(blocks, Contains(HasSubstr("b ->")));
}

TEST(PythonFlow, ShortCircuitsAreBranches) {
    EXPECT_THAT(flow_of("amp and obj.a()\nobj.b()\n"), ElementsAre("-> 1+ 2-", "a -> 2", "b -> out"));
    EXPECT_THAT(flow_of("obj.a() if amp else obj.b()\n"),
                ElementsAre("-> 1+ 2-", "a -> 3", "b -> 3", "-> out"));
}

TEST(PythonFlow, NothingFollowsAReturn) {
    EXPECT_THAT(flow_of("return obj.a()\nobj.b()\n"), ElementsAre("a "));
}

TEST(PythonFlow, MatchTriesOneCaseAfterTheOther) {
    EXPECT_THAT(flow_of("match amp:\n  case 1:\n    obj.a()\n  case _:\n    obj.b()\nobj.c()\n"),
                ElementsAre("-> 2 3", "c -> out", "a -> 1", "-> 4", "b -> 1", "->"));
}

TEST(PythonFlow, LoopDepthIsCounted) {
    const Unit unit = unit_of(
        "def f(o, xs):\n  o.a()\n  for x in xs:\n    o.b()\n"
        "    [o.c() for y in x]\n");
    std::vector<int> depths;
    for (const Call& call : unit.functions.back().calls) depths.push_back(call.loop_depth);
    EXPECT_THAT(depths, ElementsAre(0, 1, 2, 1));
}

TEST(PythonFlow, ExitsOfHostileCodeAreBounded) {
    std::string source = "def f(o):\n  with o.a()";
    for (int i = 0; i < 2000; ++i) source += ", o.a()";
    source += ":\n";
    for (int i = 0; i < 1000; ++i) source += "    if o: return\n";
    EXPECT_LT(unit_of(source).functions.back().calls.size(), 110000u);
}

TEST(PythonFlow, TenThousandBranchesEndInTime) {
    std::string source = "def f(o, x):\n  if x: o.a()\n";
    for (int i = 0; i < 10000; ++i) source += "  elif x: y = o.a()\n";
    EXPECT_EQ(unit_of(source).functions.back().calls.size(), 10001u);
}

}  // namespace
}  // namespace mp::lint::python
