#include "analyzer/python/syntax.hpp"

#include <gtest/gtest.h>

namespace mp::lint::python {
namespace {

TEST(Syntax, NodesHaveKindsPartsAndPlaces) {
    const Tree tree("x = f(a, k=1)  # why\n", Symbol("a.py"));
    const Node assignment = tree.root().child(0).child(0);
    ASSERT_EQ(assignment.kind(), Kind::assignment);
    EXPECT_EQ(assignment.part(Part::left).text(), "x");
    const Node call = assignment.part(Part::right);
    ASSERT_EQ(call.kind(), Kind::call);
    EXPECT_EQ(call.part(Part::function).kind(), Kind::identifier);
    const Node keyword = call.part(Part::arguments).child(1);
    ASSERT_EQ(keyword.kind(), Kind::keyword_argument);
    EXPECT_EQ(keyword.part(Part::value).kind(), Kind::integer);
    EXPECT_FALSE(call.part(Part::arguments).child(2));
    EXPECT_EQ(call.span(), (SourceSpan{Symbol("a.py"), 1, 5, 1, 14}));
    EXPECT_FALSE(call.part(Part::alias));
    EXPECT_TRUE(assignment.has_call());
    EXPECT_TRUE(call.part(Part::alias).children().empty());
}

TEST(Syntax, CommentsAreNoChildren) {
    const Tree tree("f(a,  # one\n  b)\n", Symbol("a.py"));
    const Node arguments = tree.root().child(0).child(0).part(Part::arguments);
    EXPECT_EQ(arguments.child(1).text(), "b");
    EXPECT_FALSE(arguments.child(2));
}

TEST(Syntax, ContinuedLinesAreNoChildren) {
    const Tree tree("x = a if \\\n  c else b\n", Symbol("a.py"));
    const Node choice = tree.root().child(0).child(0).part(Part::right);
    ASSERT_EQ(choice.kind(), Kind::conditional_expression);
    EXPECT_EQ(choice.child(1).text(), "c");
    EXPECT_EQ(choice.child(2).text(), "b");
}

TEST(Syntax, OperatorsAreTokens) {
    const Tree tree("a < b <= c\n", Symbol("a.py"));
    const Node comparison = tree.root().child(0).child(0);
    EXPECT_EQ(comparison.operator_token().text(), "<");
}

TEST(Syntax, WhatDoesNotParseLeavesTheRest) {
    const Tree tree("def f(:\n  pass\n\ndef g():\n  return h(1)\n", Symbol("a.py"));
    EXPECT_TRUE(tree.root().has_error());
    EXPECT_GT(tree.errors(), 0u);
    Node last;
    for (const Node node : tree.root().children()) last = node;
    EXPECT_EQ(last.kind(), Kind::function_definition);
    EXPECT_EQ(last.part(Part::name).text(), "g");
}

TEST(Syntax, DepthIsBounded) {
    const std::string deep = "x = " + std::string(100000, '(') + "1" + std::string(100000, ')') + "\n";
    const Tree tree(deep + "f()\n", Symbol("a.py"));
    EXPECT_LT(tree.size(), 10000u);
    EXPECT_TRUE(tree.root().has_error());
}

}  // namespace
}  // namespace mp::lint::python
