#include "analyzer/analyses/run_order.hpp"

#include <algorithm>
#include <vector>

#include "analyzer/analyses/control_flow.hpp"

namespace mp::lint {

bool runs_only_if(const Function& f, std::uint32_t block, Symbol condition, bool value) {
    std::vector<char> seen(f.flow.size());
    std::vector<std::uint32_t> open{0};
    while (!open.empty()) {
        const std::uint32_t at = open.back();
        open.pop_back();
        if (at >= f.flow.size() || seen[at]++) continue;
        if (at == block) return false;
        for (const Edge& edge : f.flow[at].to)
            if (edge.condition != condition || edge.when != value) open.push_back(edge.to);
    }
    return true;
}

namespace {

// Whether the two blocks are on opposite sides of one condition: `if fp16: model.half()`, and later `if fp16: ...
// else: ...`.
bool exclude_each_other(const Function& f, std::uint32_t a, std::uint32_t b) {
    std::vector<Symbol> seen;
    for (const Block& block : f.flow) {
        for (const Edge& edge : block.to) {
            if (edge.condition.empty() || std::ranges::find(seen, edge.condition) != seen.end()) continue;
            seen.push_back(edge.condition);
            for (const bool value : {false, true})
                if (runs_only_if(f, a, edge.condition, value) && runs_only_if(f, b, edge.condition, !value))
                    return true;
        }
    }
    return false;
}

}  // namespace

std::uint32_t block_before(const Function& f, std::size_t before) {
    return before < f.calls.size() ? f.calls[before].block : kNone;
}

bool can_run_before(const Function& f, std::uint32_t block, std::uint32_t at) {
    return at == kNowhere || (reaches(f, block, at) && !exclude_each_other(f, block, at));
}

bool always_runs_before(const Function& f, std::uint32_t block, std::uint32_t at) {
    if (f.flow.empty() || block == 0) return true;
    if (at != kNowhere) return at == block || !reaches(f, 0, at, block);
    for (std::uint32_t b = 0; b < f.flow.size(); ++b)
        if (b != block && f.flow[b].leaves && reaches(f, 0, b, block)) return false;
    return true;
}

}  // namespace mp::lint
