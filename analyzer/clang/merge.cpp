#include "analyzer/clang/merge.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace mp::lint {
namespace {

// The identity of a fact across passes: its place and kind. The dtype is part of it, because a macro may
// give one spelling two types.
auto key(const Call& f) { return std::tuple(f.span, f.kind, f.name, f.callee); }
auto key(const Cast& f) { return std::tuple(f.span, f.form, f.from, f.to); }
auto key(const Accumulation& f) { return std::tuple(f.span, f.op, f.form, f.dtype); }
auto key(const Update& f) { return std::tuple(f.span, f.target, f.dtype); }
auto key(const Scaling& f) { return std::tuple(f.span, f.factor.param, f.factor.constant, f.dtype); }
auto key(const TypeUse& f) { return std::tuple(f.span, f.name, f.alias); }

using Indices = std::vector<std::int32_t>;  // of the device pass -> of the merged function

void renumber(std::int32_t& index, const Indices& indices) {
    if (index < 0) return;
    const auto at = static_cast<std::size_t>(index);
    index = at < indices.size() ? indices[at] : kNone;
}

// Appends the facts that `into` does not have; shared facts keep the host's numbers. Several facts may have
// the same key (a template's call instantiated in a macro): they are matched in order.
template <typename Fact>
Indices add_missing(std::vector<Fact>& into, const std::vector<Fact>& from) {
    std::map<decltype(key(from[0])), std::vector<std::int32_t>> known;
    for (std::size_t i = into.size(); i-- > 0;) known[key(into[i])].push_back(static_cast<std::int32_t>(i));
    Indices indices;
    for (const auto& fact : from) {
        auto& same = known[key(fact)];
        if (same.empty()) {
            indices.push_back(static_cast<std::int32_t>(into.size()));
            into.push_back(fact);
        } else {
            indices.push_back(same.back());
            same.pop_back();
        }
    }
    return indices;
}

void add_calls(Function& host, const Function& device, Indices& calls) {
    const std::size_t before = host.calls.size();
    calls = add_missing(host.calls, device.calls);
    const bool same_flow = host.flow == device.flow;
    for (std::size_t i = before; i < host.calls.size(); ++i) {
        auto& call = host.calls[i];
        for (auto& operand : call.args) renumber(operand.call, calls);
        renumber(call.result.call, calls);
        // Its block belongs to another flow. Use the entry, which every run passes.
        if (!same_flow) call.block = 0;
    }
}

void add_casts(Function& host, const Function& device, const Indices& calls) {
    const std::size_t before = host.casts.size();
    const auto casts = add_missing(host.casts, device.casts);
    for (std::size_t i = before; i < host.casts.size(); ++i) {
        renumber(host.casts[i].source.call, calls);
        renumber(host.casts[i].inner, casts);
    }
}

void merge_function(Function& host, const Function& device) {
    if (host == device) return;
    host.is_unnamed = host.is_unnamed && device.is_unnamed;
    Indices calls;
    add_calls(host, device, calls);
    add_casts(host, device, calls);
    add_missing(host.accumulations, device.accumulations);
    add_missing(host.updates, device.updates);
    add_missing(host.scalings, device.scalings);
    add_missing(host.types, device.types);
    for (auto operand : device.returned) {
        renumber(operand.call, calls);
        if (std::find(host.returned.begin(), host.returned.end(), operand) == host.returned.end()) {
            host.returned.push_back(operand);
        }
    }
}

}  // namespace

void merge_device_pass(Unit& host, Unit&& device) {
    std::unordered_map<Symbol, std::size_t> known;
    for (std::size_t i = 0; i < host.functions.size(); ++i) known.emplace(host.functions[i].usr, i);
    for (auto& function : device.functions) {
        const auto at = known.find(function.usr);
        // A lambda under `#if` can have the number of another one in the other pass.
        const bool is_other = function.kind == FunctionKind::lambda && at != known.end() &&
                              host.functions[at->second].span != function.span;
        if (at != known.end() && !is_other) {
            merge_function(host.functions[at->second], function);
        } else {
            host.functions.push_back(std::move(function));
            ++host.coverage.functions;
        }
    }
    // Both passes see most statements, so take the larger count, not the sum.
    host.coverage.statements = std::max(host.coverage.statements, device.coverage.statements);
    host.coverage.unresolved = std::max(host.coverage.unresolved, device.coverage.unresolved);
    host.coverage.uninstantiated = std::max(host.coverage.uninstantiated, device.coverage.uninstantiated);
}

}  // namespace mp::lint
