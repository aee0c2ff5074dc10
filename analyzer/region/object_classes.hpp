#pragma once

// Finds the class of an object, of the program or of a library. Follows calls, parameters, results
// and the parameters that constructors store.

#include <utility>

#include "analyzer/region/by_symbol.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/fact_key.hpp"
#include "analyzer/region/names.hpp"

namespace mp::lint {

// Methods of a module that return the module: cuda, to, half, train, ...
bool passes_itself_on(std::string_view method);

// Functions of libraries that return their first argument, wrapped or copied: those of library.txt.
bool returns_first_argument(std::string_view name);

// Whether the operand can be an attribute of the method's object: "self.model".
bool is_attribute_of_self(const Operand&);

class ObjectClasses {
public:
    struct Caller {
        const Function* function = nullptr;
        const Call* call = nullptr;
    };

    // `callers`: calls by the USR of their callee.
    ObjectClasses(GroupsBySymbol<Caller> callers, const Names& names)
        : names_(names), callers_(std::move(callers)) {}

    // The class. For a library's object, the name of the function that made it. Empty when unknown,
    // or when callers disagree.
    Symbol of(const Function&, const Operand&);

private:
    Symbol of_call(const Function&, const Call&);
    Symbol of_item(const Function&, const Item&);
    Symbol of_parameter(const Function&, std::int32_t param);
    Symbol of_attribute(const Function&, Symbol name);
    Symbol of_returned(const Function&);
    template <class Find>
    Symbol once(FactKey, Find);

    const Names& names_;
    GroupsBySymbol<Caller> callers_;
    FactMap<Symbol> known_;
    int depth_ = 0;
};

}  // namespace mp::lint
