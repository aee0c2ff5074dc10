#include "analyzer/region/call_index.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kBits = 64;

// A bit set of positions that is read in order.
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

NameQuestion name_in(std::span<const std::string_view> names) {
    NameQuestion question;
    question.names = names;
    return question;
}

NameQuestion last_part_in(std::span<const std::string_view> parts,
                          std::function<bool(std::string_view)> accepts) {
    NameQuestion question(std::move(accepts));
    question.last_parts = parts;
    return question;
}

CallIndex::Index::Index(const std::vector<std::pair<Symbol, std::uint32_t>>& calls) : calls_of(calls) {
    std::size_t size = 0;
    for (const Symbol text : calls_of.keys()) size += text.str().size();
    all_texts.reserve(size);
    texts.reserve(calls_of.keys().size());
    for (const Symbol key : calls_of.keys()) {
        const std::string_view text = key.str();
        const char* const at = all_texts.data() + all_texts.size();
        all_texts.insert(all_texts.end(), text.begin(), text.end());
        texts.emplace_back(at, text.size());
    }
    std::vector<std::pair<Symbol, std::uint32_t>> last_parts;
    last_parts.reserve(texts.size());
    for (std::uint32_t i = 0; i < texts.size(); ++i) last_parts.emplace_back(Symbol(leaf(texts[i])), i);
    with_last_part = GroupsBySymbol<std::uint32_t>(last_parts);
}

CallIndex::CallIndex(std::span<const Function* const> functions) {
    std::size_t total = 0;
    for (const Function* f : functions) total += f->calls.size();
    std::vector<std::pair<Symbol, std::uint32_t>> names, ops;
    calls_.reserve(total);
    names.reserve(total);
    for (std::uint32_t f = 0; f < functions.size(); ++f) {
        for (std::uint32_t c = 0; c < functions[f]->calls.size(); ++c) {
            const Call& call = functions[f]->calls[c];
            const auto at = static_cast<std::uint32_t>(calls_.size());
            calls_.push_back({f, c});
            if (!call.name.empty()) names.emplace_back(call.name, at);
            if (call.op.known()) ops.emplace_back(call.op.symbol(), at);
        }
    }
    names_ = Index(names);
    ops_ = Index(ops);
}

std::vector<CallAt> CallIndex::select(const NameQuestion& name, const NameQuestion& op) const {
    Marks marks(calls_.size());
    std::size_t most = 0;
    const auto mark_text = [&](const Index& index, Symbol text) {
        const auto accepted = index.calls_of.get(text);
        for (const std::uint32_t at : accepted) marks.set(at);
        most += accepted.size();
    };
    const auto mark = [&](const Index& index, const NameQuestion& question) {
        const auto mark_if = [&](std::size_t i) {
            if (question.accepts(index.texts[i])) mark_text(index, index.calls_of.keys()[i]);
        };
        for (const std::string_view text : question.names) mark_text(index, Symbol(text));
        for (const std::string_view part : question.last_parts)
            for (const std::uint32_t i : index.with_last_part.get(Symbol(part))) mark_if(i);
        if (question.last_parts.empty() && question.accepts)
            for (std::size_t i = 0; i < index.texts.size(); ++i) mark_if(i);
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
