#include "analyzer/python/syntax.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mp::lint::python {
namespace {

using testing::ElementsAre;

TEST(Syntax, NodesHaveKindsPartsAndPlaces) {
    const Tree tree("x = f(a, k=1)  # why\n", Symbol("a.py"));
    const Node assignment = tree.root().child(0).child(0);
    ASSERT_EQ(assignment.kind(), Kind::assignment);
    EXPECT_EQ(assignment.part(Part::left).text(), "x");
    const Node call = assignment.part(Part::right);
    ASSERT_EQ(call.kind(), Kind::call);
    EXPECT_EQ(call.part(Part::function).kind(), Kind::identifier);
    const auto arguments = call.part(Part::arguments).children();
    ASSERT_EQ(arguments.size(), 2u);
    EXPECT_EQ(arguments[1].kind(), Kind::keyword_argument);
    EXPECT_EQ(arguments[1].part(Part::value).kind(), Kind::integer);
    EXPECT_EQ(call.span(), (SourceSpan{Symbol("a.py"), 1, 5, 1, 14}));
    EXPECT_FALSE(call.part(Part::alias));
    EXPECT_EQ(call.part(Part::alias).child_count(), 0u);
}

TEST(Syntax, CommentsAreNoChildren) {
    const Tree tree("f(a,  # one\n  b)\n", Symbol("a.py"));
    EXPECT_EQ(tree.root().child(0).child(0).part(Part::arguments).children().size(), 2u);
}

TEST(Syntax, OperatorsAreTokens) {
    const Tree tree("a < b <= c\n", Symbol("a.py"));
    EXPECT_THAT(tree.root().child(0).child(0).tokens(), ElementsAre("<", "<="));
}

TEST(Syntax, WhatDoesNotParseLeavesTheRest) {
    const Tree tree("def f(:\n  pass\n\ndef g():\n  return h(1)\n", Symbol("a.py"));
    EXPECT_TRUE(tree.root().has_error());
    const auto top = tree.root().children();
    ASSERT_FALSE(top.empty());
    EXPECT_EQ(top.back().kind(), Kind::function_definition);
    EXPECT_EQ(top.back().part(Part::name).text(), "g");
}

}  // namespace
}  // namespace mp::lint::python
