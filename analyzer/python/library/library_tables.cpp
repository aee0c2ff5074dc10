#include "analyzer/python/library/library_tables.hpp"

#include "analyzer/python/library/dotted.hpp"
#include "embedded_python_library.hpp"
#include "kernels/base/words.hpp"

namespace mp::lint::python {
namespace {

struct Tables {
    std::unordered_map<std::string_view, Names> names;
    std::unordered_map<std::string_view, Lists> lists;
};

void add_line(Tables& tables, std::string_view section, std::string_view line) {
    std::string_view answer;
    if (const std::size_t colon = line.find(": "); colon != std::string_view::npos) {
        answer = line.substr(0, colon);
        line.remove_prefix(colon + 1);
    }
    const bool is_list = section == "passes" || section == "items";
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
        if (is_list)
            tables.lists[section][answer].push_back(word);
        else
            tables.names[section].emplace(word, answer);
    }
}

Tables read_tables(std::string_view text) {
    Tables tables;
    for_each_table_line(
        text, [&](std::string_view section, std::string_view line) { add_line(tables, section, line); });
    return tables;
}

const Tables& tables() {
    static const Tables it = read_tables(embedded_python_library("library.txt"));
    return it;
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

const Names& names_in(std::string_view section) {
    static const Names none;
    const auto it = tables().names.find(section);
    return it == tables().names.end() ? none : it->second;
}

const Lists& lists_in(std::string_view section) {
    static const Lists none;
    const auto it = tables().lists.find(section);
    return it == tables().lists.end() ? none : it->second;
}

std::string short_name(std::string_view dotted) {
    const std::string_view owner = last_part(home_of(dotted));
    if (owner.empty() || !is_upper(owner[0])) return std::string(dotted);
    std::string_view root = first_part(dotted);
    if (root == "pytorch_lightning" || root == "lightning_fabric") root = "lightning";
    return std::string(root) + "." + std::string(owner) + "." + std::string(last_part(dotted));
}

}  // namespace mp::lint::python
