#pragma once

// Dotted names over all Python units.

#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/region/classes.hpp"

namespace mp::lint {

// What a name means: a function of the program, or a library's.
struct Meaning {
    Symbol name;
    const Function* function = nullptr;
    bool is_class = false;  // of the program
};

class Names {
public:
    explicit Names(std::vector<Unit>& units);

    // `package` is the package of the module that says the name: files beside a script are found.
    Meaning find(std::string_view name, std::string_view package) const;
    // A method of an object of this class.
    Meaning find_method(Symbol in_class, std::string_view method) const;
    const Classes& classes() const { return classes_; }
    const Function* function(Symbol usr) const;

private:
    static std::vector<const Function*> python_functions(const std::vector<Unit>& units);
    void collect_aliases(const std::vector<Unit>& units);
    void resolve_bases(std::vector<Unit>& units);
    bool defines(Symbol name) const { return functions_.contains(name) || classes_.knows(name); }
    std::string follow_aliases(std::string name) const;
    bool follow_alias(std::string& name) const;
    bool look_up(const std::string& name, Meaning& found) const;

    std::unordered_map<Symbol, const Function*> functions_;  // by usr
    std::unordered_map<Symbol, Symbol> aliases_;
    std::unordered_map<Symbol, std::vector<Symbol>> stars_;  // package -> modules it re-exports
    Classes classes_;
};

// "pkg.train" of the unit's functions; empty when it has none.
std::string_view module_of(const Unit&);
// "pkg" of "pkg.train", "" of "train".
std::string_view package_of(std::string_view module);

}  // namespace mp::lint
