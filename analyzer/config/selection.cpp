#include "analyzer/config/selection.hpp"

#include <algorithm>

#include "analyzer/config/glob.hpp"
#include "kernels/base/suggest.hpp"

namespace mp::lint {
namespace {

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

bool is_pattern(std::string_view word) { return word.find_first_of("*?[") != std::string_view::npos; }

bool is_family(std::string_view word) {
    return word.size() < 5 && word.starts_with("mp") &&
           std::all_of(word.begin() + 2, word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::size_t kExact = 1000;

// How specifically a word names a rule: 0 not at all, 1 for ALL, then the length of the family or pattern;
// an id or a name is the most specific.
std::size_t exactness(std::string_view word, const Rule& rule) {
    const std::string w = lowered(word), id = lowered(rule.id), name = lowered(rule.name);
    if (w == "all") return 1;
    if (w == id || w == name) return kExact;
    if (is_pattern(w)) return glob_match(w, id) || glob_match(w, name) ? 1 + w.size() : 0;
    return is_family(w) && id.starts_with(w) ? 1 + w.size() : 0;
}

std::size_t exactness(std::span<const std::string> words, const Rule& rule) {
    std::size_t best = 0;
    for (const std::string& word : words) best = std::max(best, exactness(word, rule));
    return best;
}

}  // namespace

bool names_rule(std::string_view word, const Rule& rule) { return exactness(word, rule) > 0; }

bool is_rule(std::string_view word, const Rule& rule) { return exactness(word, rule) == kExact; }

Status check_rule_word(std::string_view word, Rules rules) {
    // A family may still be without rules, because the numbering is fixed in advance.
    if (lowered(word) == "all" || is_family(lowered(word))) return Done{};
    for (const Rule* rule : rules) {
        if (names_rule(word, *rule)) return Done{};
    }
    std::vector<std::string_view> known{"ALL"};
    for (const Rule* rule : rules) {
        known.push_back(rule->id);
        known.push_back(rule->name);
    }
    std::string hint = did_you_mean(word, known);
    if (hint.empty()) hint = "'mp-lint rules' lists them";
    return Error{"no rule is called '" + std::string(word) + "'", hint};
}

std::vector<const Rule*> select_rules(Rules rules, std::span<const std::string> select,
                                      std::span<const std::string> ignore) {
    std::vector<const Rule*> chosen;
    for (const Rule* rule : rules) {
        const std::size_t in = select.empty() ? (rule->on_by_default ? 1 : 0) : exactness(select, *rule);
        const std::size_t out = exactness(ignore, *rule);
        if (in > 0 && (out == 0 || in > out)) chosen.push_back(rule);
    }
    return chosen;
}

}  // namespace mp::lint
