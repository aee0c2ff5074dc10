#include "analyzer/region/call_index.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mp::lint {
namespace {

constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};
constexpr std::size_t kBits = 64;

// Marked positions, and the walk over them in order.
class Marks {
public:
    explicit Marks(std::size_t size) : words_((size + kBits - 1) / kBits) {}

    void set(std::uint32_t at) { words_[at / kBits] |= std::uint64_t{1} << (at % kBits); }

    template <typename Visit>
    void for_each(Visit visit) const {
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
                visit(w * kBits + static_cast<std::size_t>(std::countr_zero(left)));
    }

private:
    std::vector<std::uint64_t> words_;
};

}  // namespace

// Symbols are small numbers, so that a group is found without hashing.
CallIndex::Groups CallIndex::grouped(const std::vector<Symbol>& texts) {
    Groups out;
    std::vector<std::uint32_t> group_of;  // by the symbol's id
    for (const Symbol text : texts) {
        if (text.empty()) continue;
        if (text.id() >= group_of.size())
            group_of.resize(std::max<std::size_t>(text.id() + 1, 2 * group_of.size()), kNoGroup);
        std::uint32_t& at = group_of[text.id()];
        if (at == kNoGroup) {
            at = static_cast<std::uint32_t>(out.groups.size());
            out.groups.push_back({.text = text.str()});
        }
        ++out.groups[at].count;
    }
    std::uint32_t total = 0;
    for (Group& g : out.groups) {
        g.first = total;
        total += std::exchange(g.count, 0);
    }
    out.positions.resize(total);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty()) continue;
        Group& g = out.groups[group_of[texts[i].id()]];
        out.positions[g.first + g.count++] = static_cast<std::uint32_t>(i);
    }
    return out;
}

CallIndex::CallIndex(std::span<const Function* const> functions) {
    std::vector<Symbol> names, ops;  // in one pass: calls are large, and all of them many
    for (std::uint32_t f = 0; f < functions.size(); ++f) {
        for (std::uint32_t c = 0; c < functions[f]->calls.size(); ++c) {
            const Call& call = functions[f]->calls[c];
            calls_.push_back({f, c});
            names.push_back(call.name);
            ops.push_back(call.op.symbol());
        }
    }
    names_ = grouped(names);
    ops_ = grouped(ops);
}

std::vector<CallAt> CallIndex::select(const NameQuestion& name, const NameQuestion& op) const {
    Marks marks(calls_.size());
    std::size_t most = 0;
    const auto mark = [&](const Groups& in, const NameQuestion& accepts) {
        if (!accepts) return;
        for (const Group& g : in.groups) {
            if (!accepts(g.text)) continue;
            for (std::uint32_t i = 0; i < g.count; ++i) marks.set(in.positions[g.first + i]);
            most += g.count;
        }
    };
    mark(names_, name);
    mark(ops_, op);
    std::vector<CallAt> out;
    if (most == 0) return out;
    out.reserve(std::min(most, calls_.size()));
    marks.for_each([&](std::size_t at) { out.push_back(calls_[at]); });
    return out;
}

}  // namespace mp::lint
