#pragma once

// The calls of a program by name and by op: it has hundreds of thousands, and a rule judges few.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

// Where a call stands.
struct CallAt {
    std::uint32_t function = 0;  // in Program::functions()
    std::uint32_t call = 0;      // in Function::calls
};

// A question about a name; none accepts nothing.
using NameQuestion = std::function<bool(std::string_view)>;

class CallIndex {
public:
    explicit CallIndex(std::span<const Function* const> functions);

    // The calls whose name `name` accepts or whose op `op` does, in the program's order. Each question is
    // asked once per distinct text, `op` of known ops only.
    std::vector<CallAt> select(const NameQuestion& name, const NameQuestion& op) const;

private:
    // The calls that share a name, or an op, by where they stand in calls_. Every question goes through
    // all texts, so these lie one behind the other.
    struct Index {
        Index() = default;
        explicit Index(const std::vector<std::pair<Symbol, std::uint32_t>>& calls);
        GroupsBySymbol<std::uint32_t> calls_of;
        std::vector<char> all_texts;          // no string: its characters could move with it
        std::vector<std::string_view> texts;  // of calls_of.keys()
    };

    std::vector<CallAt> calls_;
    Index names_, ops_;
};

}  // namespace mp::lint
