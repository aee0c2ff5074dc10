#include "analyzer/python/newer_syntax.hpp"

#include <gtest/gtest.h>

#include "tests/analyzer/python/facts_of.hpp"

namespace mp::lint::python {
namespace {

TEST(NewerSyntax, TemplatesBecomeFormattedStrings) {
    EXPECT_EQ(in_older_syntax("x = t\"a {b}\" + rt'c'\n"), "x = f\"a {b}\" + rf'c'\n");
    EXPECT_EQ(in_older_syntax("x = 't\"a\"'  # t'b'\nlt('x')\ny = f't' + dt\n"), "");
    EXPECT_EQ(in_older_syntax("'''\nt'a'\n'''\nt'b'"), "'''\nt'a'\n'''\nf'b'");
}

TEST(NewerSyntax, DefaultsOfTypeParametersBecomeBlanks) {
    EXPECT_EQ(in_older_syntax("def f[T = int, *U = *tuple[int, ...]](x=1): pass"),
              "def f[T      , *U                   ](x=1): pass");
    EXPECT_EQ(in_older_syntax("class A[T: int = bool]: x = 1"), "class A[T: int       ]: x = 1");
    EXPECT_EQ(in_older_syntax("def f[T](x=1): y[0] = 2\nclass B(C[int], x=1): pass"), "");
}

TEST(NewerSyntax, AStarBeforeABracketGetsAName) {
    EXPECT_EQ(in_older_syntax("return a, *(x for x in b)"), "return a,*_(x for x in b)");
    EXPECT_EQ(in_older_syntax("x = *[1], 2"), "x =*_[1], 2");
    EXPECT_EQ(in_older_syntax("f(a, *(b)); x = a *(b); y = [a, *(b)]; z = a, *b; w = 2 **(b)"), "");
}

TEST(NewerSyntax, SuchFilesAreReadWhole) {
    const Unit unit =
        unit_of("import torch\ndef f[T = int](x: T): return x.half(), *(x for _ in y)\nlog(t\"{f(1)}\")\n");
    EXPECT_EQ(unit.state, UnitState::ok);
    EXPECT_EQ(unit.functions.size(), 2u);
}

}  // namespace
}  // namespace mp::lint::python
