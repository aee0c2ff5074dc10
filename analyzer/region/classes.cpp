#include "analyzer/region/classes.hpp"

#include "analyzer/region/arguments.hpp"

namespace mp::lint {

Classes::Classes(std::span<const Function* const> functions) {
    for (const Function* f : functions) {
        if (f->parent_class.empty() || !is_python(*f)) continue;
        const auto [entry, is_new] = classes_.try_emplace(f->parent_class);
        if (is_new) order_.push_back(f->parent_class);
        entry->second.methods.push_back(f);
        if (entry->second.bases.empty()) entry->second.bases = f->bases;
    }
}

std::span<const Function* const> Classes::methods(Symbol name) const {
    const auto found = classes_.find(name);
    if (found == classes_.end()) return {};
    return found->second.methods;
}

// Visits the class and its ancestors until the visitor says true.
template <class Visit>
bool Classes::climb(Symbol name, int depth, Visit& visit) const {
    if (depth > kMaxDepth) return false;
    const auto found = classes_.find(name);
    if (visit(name, found == classes_.end() ? nullptr : &found->second)) return true;
    if (found == classes_.end()) return false;
    for (const Symbol base : found->second.bases)
        if (base != name && climb(base, depth + 1, visit)) return true;
    return false;
}

const Function* Classes::method(Symbol name, std::string_view method) const {
    const Function* result = nullptr;
    auto visit = [&](Symbol, const Class* c) {
        if (!c) return false;
        for (const Function* f : c->methods)
            if (last_name(f->name.str()) == method) result = f;
        return result != nullptr;
    };
    climb(name, 0, visit);
    return result;
}

Symbol Classes::library_base(Symbol name, std::string_view last) const {
    Symbol result;
    auto visit = [&](Symbol at, const Class* c) {
        if (!c && last_name(at.str()) == last) result = at;
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
