#pragma once

// Python's classes, as far as the facts of their methods show them.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

class Classes {
public:
    // A hierarchy deeper than this is not climbed.
    static constexpr int kMaxDepth = 32;

    Classes() = default;
    explicit Classes(std::span<const Function* const> functions);

    bool knows(Symbol name) const { return number_.get(name) != 0; }
    const std::vector<Symbol>& all() const { return order_; }
    std::span<const Function* const> methods(Symbol name) const;
    // The class's own method or the first inherited one, depth first in the order of the bases;
    // nullptr when the program has no such method.
    const Function* method(Symbol name, std::string_view method) const;
    // The value that __init__ of the class stores in this attribute ("self.model"), or else the
    // first inherited __init__ that stores one; two nullptr when none does.
    struct Kept {
        const Function* init = nullptr;
        const Operand* value = nullptr;
    };
    Kept kept(Symbol name, Symbol attribute) const;
    // The class itself comes first.
    void for_each_ancestor(Symbol name, const std::function<void(Symbol)>& each) const;
    // The first class outside the program, among the class and its ancestors, whose last name is
    // `last`: "pytorch_lightning.LightningModule". Empty when there is none.
    Symbol library_base(Symbol name, std::string_view last) const;
    // The first ancestor outside the program; empty when there is none.
    Symbol library_base(Symbol name) const;

private:
    struct Class {
        std::vector<const Function*> methods;
        std::vector<const Function*> inits;          // those named __init__ that store something
        const std::vector<Symbol>* bases = nullptr;  // taken from one of its methods
    };
    const Class* find(Symbol name) const;
    template <class Visit>
    bool climb(Symbol name, int depth, Visit& visit) const;

    BySymbol<std::uint32_t> number_;  // index in classes_ plus 1
    std::vector<Class> classes_;      // by first method
    std::vector<Symbol> order_;       // their names
};

}  // namespace mp::lint
