#pragma once

// Scans the text of a Python file for trigger words and imported names. A scan is thousands of times cheaper than
// extracting facts.

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/config/selection.hpp"

namespace mp::lint {

// The trigger words of all rules (analyzer/rules/triggers.hpp). Immutable after construction, so safe to use from any
// thread.
class Seeds {
public:
    explicit Seeds(Rules);

    // Whether `code` contains a trigger word.
    bool any_in(std::string_view code) const;
    // Whether the text of a file contains a trigger word outside docstrings and whole-line comments. May be true
    // without one.
    bool any_in_code(std::string_view text) const;

private:
    std::vector<std::string_view> words_;
    std::array<std::vector<std::uint16_t>, 256> by_first_;  // indices of words, by a first character
    std::bitset<65536>
        pairs_;  // pairs of first characters of words; they exclude most places with one look-up
};

// Sorted hashes of every imported name. A function of another file is imported by its own name, its class's or its
// module's. The file evaluates strings if kEvaluates is among them: a string may use any of the names.
constexpr std::string_view kEvaluates = "eval()";
std::vector<std::uint64_t> imported_names(std::string_view text);

}  // namespace mp::lint
