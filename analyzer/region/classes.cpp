#include "analyzer/region/classes.hpp"

#include "analyzer/region/calls.hpp"
#include "analyzer/region/is_leaf.hpp"

namespace mp::lint {
Classes::Classes(std::span<const Function* const> functions) {
    for (const Function* f : functions) {
        if (f->parent_class.empty() || !is_python(*f)) continue;
        std::uint32_t& number = number_[f->parent_class];
        if (number == 0) {
            order_.push_back(f->parent_class);
            classes_.push_back({.methods = {}, .inits = {}, .bases = &f->bases});
            number = static_cast<std::uint32_t>(classes_.size());
        }
        Class& c = classes_[number - 1];
        c.methods.push_back(f);
        if (!f->settings.empty() && is_leaf("__init__", f->name.str())) c.inits.push_back(f);
        if (c.bases->empty()) c.bases = &f->bases;
    }
}

const Classes::Class* Classes::find(Symbol name) const {
    const std::uint32_t number = number_.get(name);
    return number == 0 ? nullptr : &classes_[number - 1];
}

// Visits the class and its ancestors until the visitor returns true.
template <class Visit>
bool Classes::climb(Symbol name, int depth, Visit& visit) const {
    if (depth > kMaxDepth) return false;
    const Class* found = find(name);
    if (visit(name, found)) return true;
    if (!found) return false;
    for (const Symbol base : *found->bases)
        if (base != name && climb(base, depth + 1, visit)) return true;
    return false;
}

std::span<const Function* const> Classes::methods(Symbol name) const {
    const Class* found = find(name);
    return found ? std::span<const Function* const>(found->methods) : std::span<const Function* const>();
}

const Function* Classes::method(Symbol name, std::string_view method) const {
    if (leaf(method) != method) return nullptr;
    const Function* result = nullptr;
    auto visit = [&](Symbol, const Class* c) {
        if (!c) return false;
        for (const Function* f : c->methods)
            if (is_leaf(method, f->name.str())) result = f;
        return result != nullptr;
    };
    climb(name, 0, visit);
    return result;
}

Classes::Kept Classes::kept(Symbol name, Symbol attribute) const {
    Kept result;
    auto visit = [&](Symbol, const Class* c) {
        if (!c) return false;
        for (const Function* f : c->inits)
            for (const Setting& s : f->settings)
                if (s.key == attribute) result = {f, &s.value};
        return result.value != nullptr;
    };
    climb(name, 0, visit);
    return result;
}

void Classes::for_each_ancestor(Symbol name, const std::function<void(Symbol)>& each) const {
    auto visit = [&](Symbol at, const Class*) {
        each(at);
        return false;
    };
    climb(name, 0, visit);
}

Symbol Classes::library_base(Symbol name, std::string_view last) const {
    Symbol result;
    auto visit = [&](Symbol at, const Class* c) {
        if (!c && leaf(at.str()) == last) result = at;
        return !result.empty();
    };
    climb(name, 0, visit);
    return result;
}

Symbol Classes::library_base(Symbol name) const {
    Symbol result;
    auto visit = [&](Symbol at, const Class* c) {
        if (!c) result = at;
        return !result.empty();
    };
    climb(name, 0, visit);
    return result;
}

}  // namespace mp::lint
