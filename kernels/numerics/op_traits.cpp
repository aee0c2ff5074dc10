#include "kernels/numerics/op_traits.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "embedded_policies.hpp"
#include "kernels/numerics/op_table.hpp"

namespace mp {
namespace {

// In the order of Trait.
constexpr auto kNames = std::to_array<std::string_view>({
    "keeps",         "promotes",     "sums_integers",    "floats_integers",
    "truths",        "indices",      "extremes",         "several",
    "second_tensor", "moves",        "reduces",          "adds_by_index",
    "loss",          "finite_test",  "bounded",          "caps",
    "needs_fp32",    "fp32_inside",  "sums_in_fp32",     "ill_conditioned",
    "elementwise",   "sum_step",     "product",          "norm",
    "rounds_twice",  "fused",        "chooses",          "whole_layer",
    "no_half",       "no_bf16",      "writes_constants", "arithmetic",
    "domain",        "copies",       "no_element",       "samples",
    "overwrites",    "hidden_stats", "by_index",         "own_integers",
    "no_twin",       "leaks",        "half_only",        "in_place",
});
static_assert(kNames.size() == static_cast<std::size_t>(kLastTrait) + 1);

bool drop_prefix(std::string_view& name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return true;
}

bool drop_suffix(std::string_view& name, std::string_view suffix) {
    if (name.size() <= suffix.size() || !name.ends_with(suffix)) return false;
    name.remove_suffix(suffix.size());
    return true;
}

Traits parse_traits(std::string_view words) {
    Traits traits;
    for (std::string_view word = next_word(words); !word.empty(); word = next_word(words))
        if (const auto trait = trait_from_name(word)) traits.add(*trait);
    return traits;
}

struct Table {
    std::unordered_map<std::string_view, Traits> ops, collectives;  // the keys are views of the embedded text
    std::unordered_map<std::string, Traits> recorded;  // of [aten] and [dispatcher], by base_name()
};

Table read_table() {
    Table table;
    for_each_op_line(embedded_policies("ops.txt"), [&](const OpLine& line) {
        if (line.traits.empty()) return;
        const bool collective = line.section == "distributed";
        const Traits traits = parse_traits(line.traits);
        const auto put = [&](std::string_view name) {
            (collective ? table.collectives : table.ops).try_emplace(name, traits);
            if (!collective) table.recorded[base_name(name)].add(traits);
        };
        put(line.name);
        std::string_view rest = line.spellings;
        for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) put(word);
    });
    return table;
}

const Table& table() {
    static const Table it = read_table();
    return it;
}

template <typename Key>
Traits find(const std::unordered_map<Key, Traits>& traits, const Key& name) {
    const auto found = traits.find(name);
    return found == traits.end() ? Traits{} : found->second;
}

}  // namespace

std::string_view name_of(Trait trait) { return kNames[static_cast<std::size_t>(trait)]; }

std::optional<Trait> trait_from_name(std::string_view name) {
    const auto found = std::ranges::find(kNames, name);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<Trait>(found - kNames.begin());
}

Traits traits_of(std::string_view name) { return find(table().ops, name); }
Traits traits_of_collective(std::string_view name) { return find(table().collectives, name); }
Traits traits_of_recorded(std::string_view op) { return find(table().recorded, base_name(op)); }

bool item_has_elements(Traits traits, std::size_t item) {
    const bool chooses =
        traits.has(Trait::several) && traits.has(Trait::by_index) && traits.has(Trait::chooses);
    const bool is_part = traits.has(Trait::several) && traits.has(Trait::moves);
    return is_part || (item == 0 && (chooses || traits.has(Trait::extremes)));
}

bool spells_finite_test(std::string_view name) {
    static constexpr std::array<std::string_view, 4> kParts{"isfinite", "isnan", "isinf", "finitef"};
    return std::ranges::any_of(kParts,
                               [name](std::string_view part) { return name.find(part) != name.npos; });
}

std::string base_name(std::string_view op) {
    std::string_view name = op;
    if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos)
        name.remove_prefix(colons + 2);
    name = name.substr(0, name.find('.'));
    drop_prefix(name, "_");
    drop_prefix(name, "native_");
    for (const std::string_view suffix : {"_out", "_", "_backward", "_backward_data", "_forward"})
        drop_suffix(name, suffix);
    return std::string(name.empty() ? op : name);
}

}  // namespace mp
