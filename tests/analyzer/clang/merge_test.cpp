#include "analyzer/clang/merge.hpp"

#include <gtest/gtest.h>

namespace mp::lint {
namespace {

SourceSpan at(std::uint32_t line) { return {.file = Symbol("a.cu"), .line = line, .column = 1}; }

Call call(const char* name, std::uint32_t line) {
    Call c;
    c.span = at(line);
    c.name = Symbol(name);
    return c;
}

Call call_of(const char* name, std::uint32_t line, std::int32_t operand) {
    Call c = call(name, line);
    c.args.emplace_back();
    c.args[0].call = operand;
    return c;
}

Cast cast(std::uint32_t line) {
    Cast c;
    c.span = at(line);
    return c;
}

Unit unit_with(Function f) {
    Unit u;
    u.functions.push_back(std::move(f));
    u.coverage.functions = 1;
    return u;
}

Function function(const char* usr, std::vector<Call> calls) {
    Function f;
    f.usr = Symbol(usr);
    f.calls = std::move(calls);
    return f;
}

TEST(MergeDevicePass, OfEqualFactsChangesNothing) {
    Unit host = unit_with(function("k", {call("a", 1), call_of("b", 2, 0)}));
    const Unit before = host;
    merge_device_pass(host, unit_with(function("k", {call("a", 1), call_of("b", 2, 0)})));
    EXPECT_EQ(host, before);
}

TEST(MergeDevicePass, AddsFunctionsOnlyTheDeviceHas) {
    Unit host = unit_with(function("k", {}));
    merge_device_pass(host, unit_with(function("only_device", {call("a", 1)})));
    ASSERT_EQ(host.functions.size(), 2u);
    EXPECT_EQ(host.functions[1].usr.str(), "only_device");
    EXPECT_EQ(host.coverage.functions, 2u);
}

// `#if` hides the first lambda of a body from one pass, so the numbers of the passes differ.
TEST(MergeDevicePass, KeepsLambdasAtTwoPlacesApart) {
    const auto lambda = [](std::uint32_t line, std::vector<Call> calls) {
        Function f = function("k@lambda@1", std::move(calls));
        f.kind = FunctionKind::lambda;
        f.span = at(line);
        return unit_with(std::move(f));
    };
    Unit host = lambda(5, {call("a", 5)});
    merge_device_pass(host, lambda(5, {call("b", 5)}));
    ASSERT_EQ(host.functions.size(), 1u);
    EXPECT_EQ(host.functions[0].calls.size(), 2u);
    merge_device_pass(host, lambda(9, {call("c", 9)}));
    ASSERT_EQ(host.functions.size(), 2u);
    EXPECT_EQ(host.functions[0].calls.size(), 2u);
    EXPECT_EQ(host.functions[1].span, at(9));
}

TEST(MergeDevicePass, RenumbersWhatAddedFactsReferTo) {
    Unit host = unit_with(function("k", {call("host_only", 1), call("both", 2)}));
    Function device = function(
        "k", {call("both", 2), call("device_only", 3), call_of("outer", 4, 1), call_of("uses", 5, 0)});
    device.casts = {cast(6), cast(7)};
    device.casts[0].source.call = 1;
    device.casts[1].inner = 0;
    merge_device_pass(host, unit_with(device));
    const auto& merged = host.functions[0];
    ASSERT_EQ(merged.calls.size(), 5u);
    EXPECT_EQ(merged.calls[2].name.str(), "device_only");
    EXPECT_EQ(merged.calls[3].args[0].call, 2) << "the call's index in the merged function";
    EXPECT_EQ(merged.calls[4].args[0].call, 1);
    EXPECT_EQ(merged.casts[0].source.call, 2);
    EXPECT_EQ(merged.casts[1].inner, 0);
}

TEST(MergeDevicePass, KeepsFactsThatDifferOnlyInDtype) {
    Unit host = unit_with(function("k", {}));
    host.functions[0].casts = {cast(1)};
    Function device = function("k", {});
    device.casts = {cast(1)};
    device.casts[0].to = DType::fp16;
    merge_device_pass(host, unit_with(device));
    EXPECT_EQ(host.functions[0].casts.size(), 2u);
}

TEST(MergeDevicePass, MatchesRepeatedFactsOneByOne) {
    Unit host = unit_with(function("k", {call("a", 1)}));
    merge_device_pass(host, unit_with(function("k", {call("a", 1), call("a", 1)})));
    EXPECT_EQ(host.functions[0].calls.size(), 2u);
}

TEST(MergeDevicePass, PutsAddedCallsOfAnotherFlowAtTheEntry) {
    Unit host = unit_with(function("k", {}));
    Function device = function("k", {call("a", 1)});
    device.flow.resize(3);
    device.calls[0].block = 2;
    merge_device_pass(host, unit_with(device));
    EXPECT_EQ(host.functions[0].calls[0].block, 0u);
}

}  // namespace
}  // namespace mp::lint
