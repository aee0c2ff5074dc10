#pragma once

// The strings of one file as symbols, and the names that its imports bind.

#include <string>
#include <string_view>
#include <unordered_map>

#include "analyzer/python/syntax.hpp"

namespace mp::lint::python {

class Names {
public:
    Names(std::string_view module, bool is_package);

    // The symbol of a string that outlives this object: a part of the source, a literal.
    Symbol symbol(std::string_view text);
    Symbol of(Node node) { return symbol(node.text()); }
    // "a" and "b" give "a.b"; an empty first part gives "b".
    Symbol join(Symbol first, std::string_view second);

    Symbol module() const { return module_; }
    // The module in `from <node> import`: absolute, or relative to this file's package.
    Symbol imported(Node module_name);
    // "a.b  . c" without blanks.
    Symbol dotted(Node name);

    // Calls `each(bound name node, qualified name)` for each name of an import statement; the node is null
    // for `*`.
    template <typename Each>
    void each_import(Node statement, const Each& each) {
        const bool from = statement.kind() == Kind::import_from_statement;
        const Symbol module = from ? imported(statement.part(Part::module_name)) : Symbol{};
        for (const Node part : statement.children()) {
            if (part.kind() == Kind::wildcard_import) each(Node{}, module);
            if (!part.is_part(Part::name)) continue;
            const bool aliased = part.kind() == Kind::aliased_import;
            const Node name = aliased ? part.part(Part::name) : part;
            Node bound = aliased ? part.part(Part::alias) : name.child(0);
            if (!bound) bound = name;
            Symbol entity = dotted(name);
            if (from)
                entity = join(module, entity.str());
            else if (!aliased)
                entity = of(bound);  // `import a.b` binds a
            each(bound, entity);
        }
    }

private:
    Symbol module_;
    std::string package_;
    std::unordered_map<std::string_view, Symbol> known_;
    std::unordered_map<std::uint64_t, Symbol> joined_;
    std::string scratch_;
};

}  // namespace mp::lint::python
