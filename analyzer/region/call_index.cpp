#include "analyzer/region/call_index.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mp::lint {
namespace {

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

CallIndex::CallIndex(std::span<const Function* const> functions) {
    std::vector<std::pair<Symbol, std::uint32_t>> names, ops;
    for (std::uint32_t f = 0; f < functions.size(); ++f) {
        for (std::uint32_t c = 0; c < functions[f]->calls.size(); ++c) {
            const Call& call = functions[f]->calls[c];
            const auto at = static_cast<std::uint32_t>(calls_.size());
            calls_.push_back({f, c});
            if (!call.name.empty()) names.emplace_back(call.name, at);
            if (call.op.known()) ops.emplace_back(call.op.symbol(), at);
        }
    }
    names_ = GroupsBySymbol(names);
    ops_ = GroupsBySymbol(ops);
}

std::vector<CallAt> CallIndex::select(const NameQuestion& name, const NameQuestion& op) const {
    Marks marks(calls_.size());
    std::size_t most = 0;
    const auto mark = [&](const GroupsBySymbol<std::uint32_t>& calls, const NameQuestion& accepts) {
        if (!accepts) return;
        for (const Symbol text : calls.keys()) {
            if (!accepts(text.str())) continue;
            const std::span<const std::uint32_t> accepted = calls.get(text);
            for (const std::uint32_t at : accepted) marks.set(at);
            most += accepted.size();
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
