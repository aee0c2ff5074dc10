#pragma once

// Python's classes, as far as their methods tell.

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
    // The class's own or the first inherited one, depth first in the order of the bases; nullptr when
    // the program has none.
    const Function* method(Symbol name, std::string_view method) const;
    // What the class's __init__, or the first inherited one that says so, keeps as this attribute
    // ("self.model"); two nullptr when none does.
    struct Kept {
        const Function* init = nullptr;
        const Operand* value = nullptr;
    };
    Kept kept(Symbol name, Symbol attribute) const;
    // The first ancestor, or the class itself, that is no class of the program and whose last name is
    // this: "pytorch_lightning.LightningModule". Empty when there is none.
    Symbol library_base(Symbol name, std::string_view last) const;
    // Any ancestor outside the program, first one; empty when there is none.
    Symbol library_base(Symbol name) const;

private:
    struct Class {
        std::vector<const Function*> methods;
        const std::vector<Symbol>* bases = nullptr;  // as one of its methods has them
    };
    const Class* find(Symbol name) const;
    template <class Visit>
    bool climb(Symbol name, int depth, Visit& visit) const;

    BySymbol<std::uint32_t> number_;  // place in classes_, from 1 on
    std::vector<Class> classes_;      // by first method
    std::vector<Symbol> order_;       // their names
};

}  // namespace mp::lint
