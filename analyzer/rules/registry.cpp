// Every rule, in the order of its id. CMake lists the rules by the files of this folder (rule_list.hpp); a test
// checks that ids, files and pages agree.

#include <algorithm>

#include "analyzer/rules/rule.hpp"
#include "rule_list.hpp"

namespace mp::lint {

std::span<const Rule* const> all_rules() {
    static const auto kRules = [] {
        auto rules = kRulesByFile;
        std::ranges::sort(rules, {}, &Rule::id);
        return rules;
    }();
    return kRules;
}

const Rule* find_rule(std::string_view id_or_name) {
    const auto rules = all_rules();
    const auto found = std::ranges::find_if(
        rules, [&](const Rule* rule) { return rule->id == id_or_name || rule->name == id_or_name; });
    return found == rules.end() ? nullptr : *found;
}

}  // namespace mp::lint
