#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

using Rules = std::span<const Rule* const>;

// Whether a word of --select, of the configuration or of a suppression names this rule: ids (MP401), names
// (half-accumulator), families (MP4, MP), ALL, and patterns of ids or names (MP4*, half-*). ASCII case is
// ignored.
bool names_rule(std::string_view word, const Rule& rule);
// Is the word its id or name, and so no other rule's?
bool is_rule(std::string_view word, const Rule& rule);

// An Error with a suggestion when the word names no rule.
Status check_rule_word(std::string_view word, Rules rules);

// The rules to run. With an empty `select`: those that are on by default. `ignore` has priority over
// `select`, but a more specific word has priority over a wider one ("--select MP405 --ignore MP4" runs
// MP405).
std::vector<const Rule*> select_rules(Rules rules, std::span<const std::string> select,
                                      std::span<const std::string> ignore);

}  // namespace mp::lint
