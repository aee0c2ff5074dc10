#pragma once

// A look at the text of a Python file, thousands of times cheaper than its facts: is it a seed file of the slice, and
// which names does it import.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/config/selection.hpp"

namespace mp::lint {

// The trigger words of all rules (analyzer/rules/triggers.hpp). Does not change after it is made: safe to use from any
// thread.
class Seeds {
public:
    explicit Seeds(Rules);

    // A trigger word is in these characters.
    bool any_in(std::string_view code) const;
    // A trigger word is in the text of a file, outside of docstrings and of comments on lines of their own. May be true
    // where none is.
    bool any_in_code(std::string_view text) const;

private:
    std::vector<std::string_view> words_;
    std::array<std::vector<std::uint16_t>, 256> by_first_;  // indices of words, by a first character
    std::bitset<65536>
        pairs_;  // of characters with which a word begins: most places are dismissed by one look
};

// Hashes of every name that an import statement brings in, sorted: the functions of another file are
// reached by their own names, their class's, or their module's.
std::vector<std::uint64_t> imported_names(std::string_view text);

}  // namespace mp::lint
