#include <gmock/gmock.h>

#include <set>

#include "tests/analyzer/clang/facts_fixture.hpp"

namespace mp::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kGuard =
    "struct Guard { Guard(bool); ~Guard(); };\nvoid on(); void off(); void work();\n";

Function function(const std::string& code, const std::string& display = "f") {
    return function_named(facts_of(kGuard + code), display);
}

std::vector<std::string> conditions(const Function& f) {
    std::vector<std::string> out;
    for (const Block& b : f.flow)
        for (const Edge& e : b.to)
            if (!e.condition.empty()) out.push_back((e.when ? "" : "!") + std::string(e.condition.str()));
    return out;
}

std::size_t leaving(const Function& f) {
    return static_cast<std::size_t>(std::ranges::count_if(f.flow, [](const Block& b) { return b.leaves; }));
}

std::set<std::uint32_t> reachable(const Function& f) {
    std::set<std::uint32_t> seen;
    std::vector<std::uint32_t> pending{0};
    while (!pending.empty()) {
        const std::uint32_t at = pending.back();
        pending.pop_back();
        if (at >= f.flow.size() || !seen.insert(at).second) continue;
        for (const Edge& e : f.flow[at].to) pending.push_back(e.to);
    }
    return seen;
}

TEST(Flow, StraightCodeHasNone) {
    const Function f = function("void f() { on(); work(); off(); }");
    EXPECT_THAT(f.flow, IsEmpty());
    EXPECT_THAT(calls(f), ElementsAre("function on()", "function work()", "function off()"));
}

TEST(Flow, EqualConditionsHaveEqualTexts) {
    const Function f = function("void f(bool amp) { if (amp) on(); work(); if (!amp) return; off(); }");
    EXPECT_THAT(conditions(f), ElementsAre("amp", "!amp", "!amp", "amp"));
    EXPECT_EQ(leaving(f), 2u);
}

TEST(Flow, ABlockThatLeavesSaysWhere) {
    const Function f = function("void f(bool b) {\n  if (b)\n    return;\n  work();\n}");
    std::set<std::uint32_t> lines;
    for (const Block& b : f.flow)
        if (b.leaves) lines.insert(b.span.line);
    EXPECT_THAT(lines, ElementsAre(5u, 7u));
}

// The branch that ends the function is an edge with its condition, not a leaving that is always
// possible.
TEST(Flow, ALastTestLeavesOnOneWayOnly) {
    const Function f = function("void f(bool amp) { if (amp) off(); }");
    for (const Block& b : f.flow) EXPECT_TRUE(!b.leaves || b.to.empty());
    EXPECT_THAT(conditions(f), ElementsAre("amp", "!amp"));
}

TEST(Flow, AConditionThatCanChangeHasNoText) {
    EXPECT_THAT(conditions(function("void f(bool amp) { if (amp) on(); amp = !amp; if (amp) off(); }")),
                IsEmpty());
    EXPECT_THAT(conditions(function("bool ready(); void f() { if (ready()) on(); }")), IsEmpty());
    EXPECT_THAT(conditions(function("bool global; void f() { if (global) on(); }")), IsEmpty());
    EXPECT_THAT(conditions(function("void set(bool&); void f(bool amp) { set(amp); if (amp) on(); }")),
                IsEmpty());
}

TEST(Flow, FieldsOfTheObjectAreConditionsUnlessWritten) {
    EXPECT_THAT(conditions(function("struct T { bool amp; void f() { if (amp) on(); } };", "T::f")),
                ElementsAre("this->amp", "!this->amp"));
    EXPECT_THAT(
        conditions(function("struct T { bool amp; void f() { if (amp) on(); amp = false; } };", "T::f")),
        IsEmpty());
}

TEST(Flow, ComparisonsAndConjunctionsAreSplitIntoTheirParts) {
    EXPECT_THAT(conditions(function("void f(int mode, bool amp) { if (amp && mode == 2) on(); }")),
                ElementsAre("amp", "!amp", "(mode==2)", "!(mode==2)"));
}

TEST(Flow, ACallAndTheBlockItRunsInAgree) {
    const Function f = function("void f(bool amp) { if (amp) on(); else off(); work(); }");
    ASSERT_EQ(f.calls.size(), 3u);
    EXPECT_NE(f.calls[0].block, f.calls[1].block);
    EXPECT_NE(f.calls[1].block, f.calls[2].block);
    for (const Call& c : f.calls) EXPECT_TRUE(reachable(f).contains(c.block));
}

TEST(Flow, AnObjectDiesAtTheEndOfItsScope) {
    EXPECT_THAT(calls(function("void f() { { Guard g(true); work(); } off(); }")),
                ElementsAre("constructor Guard::Guard(true)", "function work()",
                            "destructor Guard::~Guard(g)", "function off()"));
}

TEST(Flow, AnEarlyReturnRunsItsOwnDestructor) {
    const Function f = function("void f(bool b) { Guard g(true); if (b) return; work(); }");
    std::size_t deaths = 0;
    for (const Call& c : f.calls) deaths += c.kind == CallKind::destructor;
    EXPECT_EQ(deaths, 2u);
}

TEST(Flow, MembersAndOwnersRunTheDestructorsTheyHold) {
    EXPECT_THAT(calls(function("struct Holder { Guard g{true}; };\nvoid f() { Holder h; work(); }")),
                testing::Contains("destructor Guard::~Guard(h)"));
    EXPECT_THAT(
        calls(function("void f() { std::unique_ptr<Guard> g(new Guard(true)); work(); }")),
        ElementsAre("constructor Guard::Guard(true)", "function work()", "destructor Guard::~Guard(g)"));
}

TEST(Flow, DeleteRunsTheDestructor) {
    EXPECT_THAT(calls(function("void f(Guard* g) { delete g; }")),
                ElementsAre("destructor Guard::~Guard(g)"));
}

TEST(Flow, ADestructorRunsThoseOfItsMembers) {
    EXPECT_THAT(calls(function("struct T { Guard g{true}; ~T() { work(); } };", "T::~T")),
                ElementsAre("function work()", "destructor Guard::~Guard(g)"));
}

TEST(Flow, AConstructorRunsItsInitialisersFirst) {
    EXPECT_THAT(calls(function("struct T { Guard g; T(bool b) : g(b) { work(); } };", "T::T")),
                ElementsAre("constructor Guard::Guard(b)", "function work()"));
}

TEST(Flow, AThrowLeavesAbortDoesNot) {
    const Function f = function("void f(bool b) { on(); if (b) throw 1; off(); }");
    EXPECT_EQ(leaving(f), 2u);
    const Function g = function("[[noreturn]] void die(); void f(bool b) { on(); if (b) die(); off(); }");
    EXPECT_EQ(leaving(g), 1u);
}

TEST(Flow, ResultsStillPointAtTheirCallsAfterDestructorsCameBetween) {
    const Function f = function(
        "int make(); void take(int);\nvoid f(bool b) { { Guard g(b); } int x = make(); if (b) return; "
        "take(x); }");
    for (const Call& c : f.calls)
        if (c.name.str() == "take") {
            ASSERT_NE(c.args[0].call, kNone);
            EXPECT_EQ(f.calls[static_cast<std::size_t>(c.args[0].call)].name.str(), "make");
        }
}

TEST(Flow, ALoopComesBack) {
    const Function f = function("void f(int n) { for (int i = 0; i < n; ++i) work(); off(); }");
    ASSERT_EQ(f.calls.size(), 2u);
    EXPECT_EQ(f.calls[0].loop_depth, 1);
    EXPECT_EQ(f.calls[1].loop_depth, 0);
    bool back = false;
    for (std::uint32_t i = 0; i < f.flow.size(); ++i)
        for (const Edge& e : f.flow[i].to) back |= e.to <= i;
    EXPECT_TRUE(back);
}

TEST(Flow, KernelsHaveNone) {
    EXPECT_THAT(function("__device__ void dev(); __global__ void f(int n) { if (n) dev(); }").flow,
                IsEmpty());
}

}  // namespace
}  // namespace mp::lint
