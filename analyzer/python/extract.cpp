#include "analyzer/python/extract.hpp"

#include <algorithm>
#include <string>

#include "analyzer/python/file.hpp"
#include "analyzer/python/newer_syntax.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kMaxMessages = 5;

void count_errors(const Tree& tree, Coverage& coverage) {
    coverage.errors = tree.errors();
    for (std::uint32_t i = 0; i < tree.size() && coverage.messages.size() < kMaxMessages; ++i)
        if (tree.at(i).kind() == Kind::error)
            coverage.messages.push_back(Symbol(to_string(tree.at(i).span()) + ": does not parse"));
}

Unit extract_parsed(const Source& source) {
    Unit unit;
    unit.path = Symbol(source.path);
    unit.language = Language::python;
    File file(source, unit);
    if (!file.tree.root()) {
        unit.state = UnitState::failed;
        unit.coverage.errors = 1;
        unit.coverage.messages = {Symbol(source.path + ":1:1: the parser gave up")};
        return unit;
    }
    extract_module(file);
    while (!file.pending.empty()) {
        const Pending next = std::move(file.pending.front());
        file.pending.pop_front();
        extract_body(file, next);
    }
    std::sort(unit.functions.begin(), unit.functions.end(), [](const Function& a, const Function& b) {
        return a.span != b.span ? a.span < b.span : a.name.str() < b.name.str();
    });
    const auto by_name = [](Symbol a, Symbol b) { return a.str() < b.str(); };
    std::sort(unit.taken.begin(), unit.taken.end(), by_name);
    unit.taken.erase(std::unique(unit.taken.begin(), unit.taken.end()), unit.taken.end());
    count_errors(file.tree, unit.coverage);
    if (unit.coverage.errors > 0) unit.state = UnitState::partial;
    return unit;
}

}  // namespace

Unit extract(const Source& source) {
    Unit unit = extract_parsed(source);
    if (unit.coverage.errors == 0) return unit;
    const std::string older = in_older_syntax(source.text);
    return older.empty() ? unit
                         : extract_parsed({.path = source.path, .module = source.module, .text = older});
}

}  // namespace mp::lint::python
