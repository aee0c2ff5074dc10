#pragma once

// Dotted names over all Python units.

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/region/classes.hpp"

namespace mp::lint {

// The meaning of a name: a function of the program, or a name of a library.
struct Meaning {
    Symbol name;
    const Function* function = nullptr;
    bool is_class = false;  // of the program
};

// The value that a module or a class binds to a name.
struct Bound {
    const Function* function = nullptr;
    const Definition* definition = nullptr;
};

// What code reads under a name: one of the three, or nothing.
struct Reading {
    const Function* function = nullptr;
    Symbol in_class;
    Bound bound;
    bool is_known() const { return function || bound.definition || !in_class.empty(); }
};

class Names {
public:
    explicit Names(std::vector<Unit>& units);

    // The method of an object of this class.
    Meaning find_method(Symbol in_class, std::string_view method) const;
    // Whether objects of this class of the program are torch.nn.Modules.
    bool is_module(Symbol in_class) const;
    const Classes& classes() const { return classes_; }
    // False if the last part of no name of the program is this one.
    bool may_name(std::string_view last) const { return last_parts_.get(Symbol(last)) != 0; }
    const Function* function(Symbol usr) const { return functions_.get(usr); }

private:
    friend class NameFinder;

    void collect_functions(std::span<const Function* const> functions);
    void forget_what_is_set(std::span<const Function* const> functions);
    void collect_aliases(std::span<const Function* const> functions);
    void collect_folders(const std::vector<Unit>& units);
    void resolve_bases(std::vector<Unit>& units);
    void know(Symbol name);
    void know_all(std::span<const Function* const> functions);
    bool defines(Symbol name) const {
        return function(name) || classes_.knows(name) || definition(name).definition;
    }
    Bound definition(Symbol name) const {
        const std::uint32_t number = definition_number_.get(name);
        return number == 0 ? Bound{} : definitions_[number - 1];
    }
    bool read(Symbol name, Reading& found) const;
    Symbol follow_aliases(Symbol name) const;
    Symbol follow_alias(Symbol name) const;
    bool look_up(Symbol name, Meaning& found) const;

    BySymbol<const Function*> functions_;  // by usr
    BySymbol<Symbol> aliases_;
    std::unordered_map<Symbol, std::vector<Symbol>> stars_;  // package -> modules it re-exports
    BySymbol<char> folders_;                                 // above the outermost packages
    BySymbol<char> known_;                       // names of the program and their scopes: "pkg.train", "pkg"
    BySymbol<std::uint32_t> definition_number_;  // index in definitions_ plus 1
    std::vector<Bound> definitions_;
    BySymbol<char> last_parts_;     // of functions, classes, definitions and aliases
    BySymbol<char> defined_parts_;  // of definitions
    std::string_view last_scope_;   // of the name that know() has recorded last
    Classes classes_;
};

// Finds names and memoises them. Not thread-safe: each thread has its own.
class NameFinder {
public:
    explicit NameFinder(const Names& names) : names_(names) {}

    // `package`: of the module that uses the name, so that files beside a script are found.
    Meaning find(Symbol name, Symbol package);
    // What code reads under the name. Attributes of classes may be inherited.
    Reading read(Symbol name, Symbol package);

private:
    template <class Try>
    void for_each_spelling(Symbol name, Symbol package, Try attempt);
    bool leads_on(Symbol package, Symbol first);
    Meaning look_for(Symbol name, Symbol package);

    const Names& names_;
    std::unordered_map<std::uint64_t, bool> leads_on_;  // by package and first part
    std::unordered_map<std::uint64_t, Meaning> found_;  // by package and name
    std::unordered_map<std::uint64_t, Reading> read_;   // the same
};

// "pkg.train" of the unit's functions; empty when it has none.
std::string_view module_of(const Unit&);
// "pkg" of "pkg.train", "" of "train".
std::string_view package_of(std::string_view module);

}  // namespace mp::lint
