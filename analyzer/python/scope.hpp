#pragma once

// The names that a module, function or class binds, and what is known about each before any statement runs.

#include <cstdint>
#include <vector>

#include "analyzer/python/flat_map.hpp"
#include "analyzer/python/value.hpp"

namespace mp::lint::python {

struct ClassInfo;
class Names;

struct Binding {
    enum class Kind : std::uint8_t { variable, parameter, import, function, class_ };

    Symbol name;
    Kind kind = Kind::variable;
    std::uint32_t count = 0;  // number of places that bind it
    bool in_loop = false;     // at least one of them is in a loop
    bool elsewhere = false;   // `global` or `nonlocal`: it belongs to an outer scope
    bool shared = false;      // an inner scope writes it
    Symbol entity{};          // of an import, a function, a class

    // Whether the value never changes after the first binding.
    bool is_fixed() const { return count <= 1 && !in_loop && !shared && !elsewhere; }
};

struct Scope {
    enum class Kind : std::uint8_t { module, function, class_ };

    Kind kind = Kind::module;
    Scope* parent = nullptr;
    Symbol prefix;               // qualifier of names bound here: "pkg.train.f"
    ClassInfo* owner = nullptr;  // of a class, and of its methods
    std::vector<Binding> bindings{};
    FlatMap index{};
    std::vector<Value> last{};    // values at the end of the scope; empty until it has been walked
    bool has_inner = false;       // functions in it may read its names
    std::vector<Symbol> stars{};  // modules of `from m import *`
    // "d['k']" of statements that store there, "d" of those that store under a key that is not written out.
    std::vector<Symbol> stored{};

    Binding* find(Symbol name) {
        const std::uint32_t i = index.find(name);
        return i == FlatMap::kAbsent ? nullptr : &bindings[i];
    }
    Binding& bind(Symbol name, Binding::Kind kind, bool in_loop = false);
};

// `d['k']` and `d[0]`.
bool has_literal_index(Node subscript);

// Adds the names that the statements of `body` bind, without those inside nested functions and classes.
void scan_bindings(Scope& scope, Node body, Names& names);

// Calls `each` for every plain name in an assignment target: `a, (b, *c)` gives a, b and c.
template <typename Each>
void each_target(Node target, const Each& each) {
    switch (target.kind()) {
        case Kind::identifier:
            each(target);
            return;
        case Kind::pattern_list:
        case Kind::tuple_pattern:
        case Kind::list_pattern:
        case Kind::tuple:
        case Kind::list:
        case Kind::expression_list:
        case Kind::list_splat:
        case Kind::list_splat_pattern:
        case Kind::parenthesized_expression:
        case Kind::as_pattern_target:
            for (const Node child : target.children()) each_target(child, each);
            return;
        default:
            return;
    }
}

}  // namespace mp::lint::python
