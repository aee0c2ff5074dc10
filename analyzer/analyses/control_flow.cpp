#include "analyzer/analyses/control_flow.hpp"

#include <algorithm>
#include <utility>

namespace mp::lint {

bool reaches(const Function& f, std::uint32_t from, std::uint32_t to, std::uint32_t without) {
    if (from == to || f.flow.empty()) return true;
    std::vector<char> seen(f.flow.size());
    std::vector<std::uint32_t> open{from};
    while (!open.empty()) {
        const std::uint32_t at = open.back();
        open.pop_back();
        if (at >= f.flow.size() || at == without || seen[at]++) continue;
        if (at == to) return true;
        for (const Edge& edge : f.flow[at].to) open.push_back(edge.to);
    }
    return false;
}

bool follows_always(const Function& f, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t b = 0; b < f.flow.size(); ++b)
        if (f.flow[b].leaves && b != to && from != to && reaches(f, from, b, to)) return false;
    return true;
}

ControlFlow::ControlFlow(const Function& f) {
    find_dominators(f);
    find_loops(f);
}

bool ControlFlow::dominates(std::uint32_t a, std::uint32_t b) const {
    for (std::size_t steps = 0; steps <= dominator_.size(); ++steps) {
        if (a == b) return true;
        if (b == 0 || b >= dominator_.size() || dominator_[b] == kNoBlock) return false;
        b = dominator_[b];
    }
    return false;
}

// Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
void ControlFlow::find_dominators(const Function& f) {
    const std::size_t n = std::max<std::size_t>(f.flow.size(), 1);
    dominator_.assign(n, kNoBlock);
    before_.resize(n);
    std::vector<std::uint32_t> order, number(n, kNoBlock);
    std::vector<std::pair<std::uint32_t, std::size_t>> stack{{0, 0}};
    std::vector<char> seen(n, 0);
    seen[0] = 1;
    while (!stack.empty() && !f.flow.empty()) {
        auto& [b, at] = stack.back();
        const std::uint32_t from = b;
        if (at >= f.flow[from].to.size()) {
            number[from] = static_cast<std::uint32_t>(order.size());
            order.push_back(from);
            stack.pop_back();
            continue;
        }
        const Edge& e = f.flow[from].to[at++];
        if (e.raises || e.to >= n) continue;
        before_[e.to].push_back(from);
        if (!seen[e.to]) seen[e.to] = 1, stack.emplace_back(e.to, 0);
    }
    dominator_[0] = 0;
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
        while (a != b) {
            while (number[a] < number[b]) a = dominator_[a];
            while (number[b] < number[a]) b = dominator_[b];
        }
        return a;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto b = order.rbegin(); b != order.rend(); ++b) {
            if (*b == 0) continue;
            std::uint32_t best = kNoBlock;
            for (const std::uint32_t p : before_[*b])
                if (dominator_[p] != kNoBlock) best = best == kNoBlock ? p : meet(best, p);
            if (best != dominator_[*b]) dominator_[*b] = best, changed = true;
        }
    }
}

void ControlFlow::find_loops(const Function& f) {
    const auto n = static_cast<std::uint32_t>(before_.size());
    always_.assign(n, 1);
    for (std::uint32_t b = 0; b < f.flow.size(); ++b)
        for (std::uint32_t a = 0; a < n && f.flow[b].leaves && is_reached(b); ++a)
            if (!dominates(a, b)) always_[a] = 0;
    for (std::uint32_t head = 0; head < n; ++head)
        for (const std::uint32_t last : before_[head]) {
            if (!dominates(head, last)) continue;
            std::vector<char>& inside = loops_.try_emplace(head, n, 0).first->second;
            inside[head] = 1;
            std::vector<std::uint32_t> pending{last};
            while (!pending.empty()) {
                const std::uint32_t b = pending.back();
                pending.pop_back();
                if (inside[b]) continue;
                inside[b] = 1;
                pending.insert(pending.end(), before_[b].begin(), before_[b].end());
            }
        }
}

bool ControlFlow::is_in_loop(std::uint32_t block) const {
    return std::ranges::any_of(loops_, [&](const auto& loop) { return is_in_loop(block, loop.first); });
}

bool ControlFlow::is_in_loop(std::uint32_t block, std::uint32_t head) const {
    const auto loop = loops_.find(head);
    return loop != loops_.end() && block < loop->second.size() && loop->second[block];
}

std::uint32_t ControlFlow::innermost_head(std::uint32_t block) const {
    std::uint32_t inner = kNoBlock;
    for (const auto& [head, inside] : loops_)
        if (head != block && inside[block] && (inner == kNoBlock || dominates(inner, head))) inner = head;
    return inner;
}

bool ControlFlow::runs_in_each_round(const Function& f, std::uint32_t block) const {
    if (block >= before_.size()) return true;
    for (std::uint32_t inner = block, head = 0; (head = innermost_head(inner)) != kNoBlock; inner = head) {
        const std::vector<char>& inside = loops_.at(head);
        for (const std::uint32_t last : before_[head])
            if (inside[last] && !dominates(inner, last)) return false;
        for (std::uint32_t b = 0; b < inside.size(); ++b) {
            if (!inside[b] || b == head) continue;
            const auto goes_out = [&](const Edge& e) { return !e.raises && !inside[e.to]; };
            if (f.flow[b].leaves || std::ranges::any_of(f.flow[b].to, goes_out)) return false;
        }
    }
    return true;
}

}  // namespace mp::lint
