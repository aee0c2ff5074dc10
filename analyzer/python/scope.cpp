#include "analyzer/python/scope.hpp"

#include <algorithm>

#include "analyzer/python/names.hpp"

namespace mp::lint::python {

Binding& Scope::bind(Symbol name, Binding::Kind as, bool in_loop) {
    std::uint32_t i = index.find(name);
    if (i == FlatMap::kAbsent) {
        i = static_cast<std::uint32_t>(bindings.size());
        index.insert(name, i);
        bindings.push_back({.name = name, .kind = as});
    }
    Binding& it = bindings[i];
    if (it.kind != as) it.kind = Binding::Kind::variable, it.entity = {};
    ++it.count;
    it.in_loop |= in_loop;
    return it;
}

namespace {

class Scan {
public:
    Scan(Scope& scope, Names& names) : scope_(scope), names_(names) {}

    void run(Node body) {
        if (!body) return;
        const std::uint32_t end = body.end_index();
        for (Node node = body; node && node.index() < end;)
            node = visit(node) ? node.next_inside() : node.next_outside();
    }

private:
    bool in_loop(Node at) const { return at.index() < loop_end_; }

    void bind(Node target) {
        each_target(target,
                    [&](Node name) { scope_.bind(names_.of(name), Binding::Kind::variable, in_loop(name)); });
    }

    void store(Node target) {
        if (target.kind() != Kind::subscript) return;
        const Node changed = has_literal_index(target) ? target : target.part(Part::value);
        scope_.stored.push_back(Symbol(changed.text()));
    }

    void define(Node node, Binding::Kind kind) {
        const Symbol name = names_.of(node.part(Part::name));
        if (name.empty()) return;
        Binding& it = scope_.bind(name, kind, in_loop(node));
        if (it.kind == kind) it.entity = names_.join(scope_.prefix, name.str());
    }

    void import(Node node) {
        names_.each_import(node, [&](Node bound, Symbol entity) {
            if (!bound) {
                scope_.stars.push_back(entity);
                return;
            }
            Binding& it = scope_.bind(names_.of(bound), Binding::Kind::import);
            if (it.kind == Binding::Kind::import && it.entity.empty()) it.entity = entity;
        });
    }

    void outer(Node node) {
        for (const Node name : node.children()) {
            scope_.bind(names_.of(name), Binding::Kind::variable).elsewhere = true;
            for (Scope* up = scope_.parent; up; up = up->parent)
                if (Binding* found = up->find(names_.of(name))) found->shared = true;
        }
    }

    // `case x:` binds x.
    void capture(Node node) {
        const Node name = node.child(0);
        if (name && !node.child(1)) scope_.bind(names_.of(name), Binding::Kind::variable);
    }

    // Returns whether to visit the children.
    bool visit(Node node) {
        switch (node.kind()) {
            case Kind::function_definition:
                define(node, Binding::Kind::function);
                return false;
            case Kind::class_definition:
                define(node, Binding::Kind::class_);
                return false;
            case Kind::lambda:
                return false;
            case Kind::import_statement:
            case Kind::import_from_statement:
                import(node);
                return false;
            case Kind::global_statement:
            case Kind::nonlocal_statement:
                outer(node);
                return false;
            case Kind::for_statement:
                loop_end_ = std::max(loop_end_, node.end_index());
                bind(node.part(Part::left));
                return true;
            case Kind::while_statement:
                loop_end_ = std::max(loop_end_, node.end_index());
                return true;
            case Kind::assignment:
                if (node.part(Part::right)) bind(node.part(Part::left));
                store(node.part(Part::left));
                return true;
            case Kind::augmented_assignment:
                bind(node.part(Part::left));
                store(node.part(Part::left));
                return true;
            case Kind::named_expression:
                bind(node.part(Part::name));
                return true;
            case Kind::dotted_name:
                capture(node);
                return false;
            case Kind::as_pattern_target:
                bind(node);
                return false;
            default:
                return true;
        }
    }

    Scope& scope_;
    Names& names_;
    std::uint32_t loop_end_ = 0;
};

}  // namespace

bool has_literal_index(Node subscript) {
    const Node index = subscript.part(Part::subscript);
    if (index.kind() != Kind::string) return index.kind() == Kind::integer;
    for (const Node part : index.children())
        if (part.kind() == Kind::interpolation) return false;
    return true;
}

void scan_bindings(Scope& scope, Node body, Names& names) { Scan(scope, names).run(body); }

}  // namespace mp::lint::python
