// A generator used as a context manager: the code before its `yield` becomes its __enter__, the code after
// it its __exit__.

#include <algorithm>

#include "analyzer/python/builder.hpp"

namespace mp::lint::python {
namespace {

std::vector<bool> reachable_blocks(const std::vector<Block>& flow) {
    std::vector<bool> seen(flow.size());
    std::vector<std::uint32_t> open{0};
    while (!open.empty()) {
        const std::uint32_t block = open.back();
        open.pop_back();
        if (seen[block]) continue;
        seen[block] = true;
        for (const Edge& edge : flow[block].to) open.push_back(edge.to);
    }
    return seen;
}

// Removes the calls, settings and blocks that cannot be reached, and renumbers the calls.
void prune(Function& f) {
    const std::vector<bool> runs = reachable_blocks(f.flow);
    std::vector<std::int32_t> number(f.calls.size(), kNone);
    std::vector<Call> kept;
    for (std::size_t i = 0; i < f.calls.size(); ++i) {
        if (!runs[f.calls[i].block]) continue;
        number[i] = static_cast<std::int32_t>(kept.size());
        kept.push_back(f.calls[i]);
    }
    const auto renumber = [&](std::int32_t& call) {
        if (call != kNone) call = number[static_cast<std::size_t>(call)];
    };
    const auto renumber_operand = [&](Operand& operand) {
        renumber(operand.call);
        if (operand.refers.str().starts_with('@')) operand.refers = {};  // it has the number of a call
    };
    for (Call& call : kept)
        for (Operand& argument : call.args) renumber_operand(argument);
    for (Operand& operand : f.returned) renumber_operand(operand);
    for (Setting& setting : f.settings) renumber_operand(setting.value);
    for (Accumulation& it : f.accumulations) renumber(it.call);
    std::erase_if(f.accumulations, [](const Accumulation& it) { return it.call == kNone; });
    std::erase_if(f.settings, [&](const Setting& it) { return !runs[it.block]; });
    f.calls = std::move(kept);
    for (std::size_t i = 0; i < f.flow.size(); ++i)
        if (!runs[i]) f.flow[i] = {};
}

void rename(Function& f, std::string_view leaf) {
    f.usr = f.name = f.display = Symbol(std::string(f.name.str()).append(1, '.').append(leaf));
}

}  // namespace

void Builder::finish_generator() {
    Function enter = f_, exit = std::move(f_);
    rename(enter, "__enter__");
    for (const auto& [before, after] : yields_) {
        Block& block = enter.flow[before];
        const std::uint32_t next = after;
        std::erase_if(block.to, [next](const Edge& edge) { return edge.to == next; });
        block.leaves = true;
    }
    prune(enter);
    rename(exit, "__exit__");
    // Block 0 is the new entry, so the existing blocks move up by one.
    exit.flow.insert(exit.flow.begin(), Block{});
    for (std::size_t i = 1; i < exit.flow.size(); ++i)
        for (Edge& edge : exit.flow[i].to) ++edge.to;
    for (const auto& [before, after] : yields_) exit.flow[0].to.emplace_back().to = after + 1;
    for (Call& call : exit.calls) ++call.block;
    for (Setting& setting : exit.settings) ++setting.block;
    exit.returned.clear();
    prune(exit);
    file_.unit.functions.push_back(std::move(enter));
    file_.unit.functions.push_back(std::move(exit));
}

}  // namespace mp::lint::python
