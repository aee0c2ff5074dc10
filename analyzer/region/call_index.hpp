#pragma once

// The calls of a program by name and by op. A program has hundreds of thousands of calls and a rule
// judges few of them.

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

// A predicate on a name. An empty function accepts nothing.
using NameQuestion = std::function<bool(std::string_view)>;

class CallIndex {
public:
    explicit CallIndex(std::span<const Function* const> functions);

    // The calls whose name `name` accepts or whose op `op` accepts, in the program's order. Each
    // predicate is called once per distinct string, `op` only for known ops.
    std::vector<CallAt> select(const NameQuestion& name, const NameQuestion& op) const;

private:
    // Positions in calls_, by name or by op. Every predicate runs over all strings, so the strings
    // are stored one after the other.
    struct Index {
        Index() = default;
        explicit Index(const std::vector<std::pair<Symbol, std::uint32_t>>& calls);
        GroupsBySymbol<std::uint32_t> calls_of;
        std::vector<char> all_texts;          // not a std::string: a moved short string would move its
                                              // characters
        std::vector<std::string_view> texts;  // of calls_of.keys()
    };

    std::vector<CallAt> calls_;
    Index names_, ops_;
};

}  // namespace mp::lint
