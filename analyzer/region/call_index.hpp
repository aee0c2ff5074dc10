#pragma once

// The calls of a program by name and by op. A program has hundreds of thousands of calls and a rule
// judges few of them.

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

// The position of a call.
struct CallAt {
    std::uint32_t function = 0;  // in Program::functions()
    std::uint32_t call = 0;      // in Function::calls
};

// Which names to select. The default accepts none. The spans must outlive the question.
struct NameQuestion {
    NameQuestion() = default;
    // Asked about every distinct name, of which a program has some 20,000. Prefer name_in() and last_part_in().
    template <std::predicate<std::string_view> Predicate>
    NameQuestion(Predicate predicate) : accepts(std::move(predicate)) {}

    std::span<const std::string_view> names;  // these are accepted
    std::span<const std::string_view>
        last_parts;  // if not empty, only names with one of these are asked about
    std::function<bool(std::string_view)> accepts;
};

// Exactly these names.
NameQuestion name_in(std::span<const std::string_view> names);
// Names whose last part, as leaf() gives it, is one of these and which the predicate accepts: {"half", "to"}
// accepts "torch.Tensor.half".
NameQuestion last_part_in(
    std::span<const std::string_view> parts,
    std::function<bool(std::string_view)> accepts = [](std::string_view) { return true; });

class CallIndex {
public:
    explicit CallIndex(std::span<const Function* const> functions);

    // The calls whose name `name` accepts or whose op `op` accepts, in the program's order. Each
    // predicate is called at most once per distinct string, `op` only for known ops.
    std::vector<CallAt> select(const NameQuestion& name, const NameQuestion& op) const;

private:
    // Positions in calls_, by name or by op. Most predicates run over all strings, so the strings
    // are stored one after the other.
    struct Index {
        Index() = default;
        explicit Index(const std::vector<std::pair<Symbol, std::uint32_t>>& calls);
        GroupsBySymbol<std::uint32_t> calls_of;
        std::vector<char> all_texts;          // not a std::string: a moved short string would move its
                                              // characters
        std::vector<std::string_view> texts;  // of calls_of.keys()
        GroupsBySymbol<std::uint32_t> with_last_part;  // positions in texts
    };

    std::vector<CallAt> calls_;
    Index names_, ops_;
};

}  // namespace mp::lint
