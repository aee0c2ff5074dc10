#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

using Rules = std::span<const Rule* const>;

// Does a word of --select, of the configuration or of a suppression mean this rule? Ids (MP401),
// names (half-accumulator), families (MP4, MP), ALL, and patterns of either (MP4*, half-*). ASCII
// case ignored.
bool names_rule(std::string_view word, const Rule& rule);
// Is the word its id or name, and so no other rule's?
bool is_rule(std::string_view word, const Rule& rule);

// An Error with a suggestion when the word means no rule at all.
Status check_rule_word(std::string_view word, Rules rules);

// The rules to run. Empty `select`: those on by default. `ignore` wins over `select`, except that
// the more exact word wins over a wider one ("--select MP405 --ignore MP4" runs MP405).
std::vector<const Rule*> select_rules(Rules rules, std::span<const std::string> select,
                                      std::span<const std::string> ignore);

}  // namespace mp::lint
