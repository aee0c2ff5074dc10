#include "analyzer/python/classes.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/python/constants.hpp"
#include "analyzer/python/file.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

constexpr int kMaxBases = 64;  // limit on visited bases: inheritance in broken code may be circular

// The `self.x` assignments of a method, including those in nested functions: they have the same self.
class AttributeScan {
public:
    AttributeScan(ClassInfo& into, Names& names, Symbol self, bool is_init)
        : into_(into), names_(names), self_(self), is_init_(is_init) {}

    void run(Node method) {
        method_ = method;
        const Node body = method.part(Part::body);
        const std::uint32_t end = body ? body.end_index() : 0;
        for (Node node = body; node && node.index() < end; node = node.next_inside()) visit(node);
    }

private:
    Symbol attribute_of_self(Node target) {
        if (target.kind() != Kind::attribute) return {};
        const Node object = target.part(Part::object);
        if (object.kind() != Kind::identifier || names_.of(object) != self_) return {};
        return names_.of(target.part(Part::attribute));
    }

    void visit(Node node) {
        if (node.kind() == Kind::assignment) assign(node.part(Part::left), node.part(Part::right));
        if (node.kind() == Kind::augmented_assignment) change(node.part(Part::left));
        if (node.kind() == Kind::for_statement) change(node.part(Part::left));
        if (node.kind() == Kind::as_pattern_target) change(node.child(0));
        if (node.kind() == Kind::call) register_buffer(node);
        if (node.kind() == Kind::call) set_by_name(node);
    }

    // `setattr(self, f"scaler{i}", scaler)`, `self.add_module(f"layer{i}", layer)`
    void set_by_name(Node call) {
        const Node function = call.part(Part::function), arguments = call.part(Part::arguments);
        const std::string_view method = attribute_of_self(function).str();
        const bool adds = method == "add_module" || method == "register_module";
        const bool sets = function.kind() == Kind::identifier && function.text() == "setattr";
        const std::uint32_t first = adds ? 0 : 1;  // the name; the value follows
        if ((!adds && !sets) || !arguments.child(first + 1)) return;
        const Node object = arguments.child(0);
        const std::string name = attribute_text(arguments.child(first));
        const bool of_self = adds || (object.kind() == Kind::identifier && names_.of(object) == self_);
        if (!of_self || name.empty()) return;
        AttributeInfo& it = into_.add_attribute(Symbol(name));
        note_writer(it);
        if (!is_init_) it.assigned.push_back(arguments.child(first + 1));
    }

    void note_writer(AttributeInfo& it) const {
        if (is_init_) return;
        it.outside_init = true;
        if (it.writers.empty() || it.writers.back().index() != method_.index()) it.writers.push_back(method_);
    }

    // `self.register_buffer("x", t)`
    void register_buffer(Node call) {
        const Node function = call.part(Part::function), arguments = call.part(Part::arguments);
        if (attribute_of_self(function).str() != "register_buffer") return;
        const std::string name = attribute_text(arguments.child(0));
        if (name.empty() || !arguments.child(1)) return;
        AttributeInfo& it = into_.add_attribute(Symbol(name));
        note_writer(it);
        it.is_buffer = true;
        if (!is_init_) it.assigned.push_back(arguments.child(1));
    }

    void assign(Node target, Node right) {
        if (!right) return;
        if (target.kind() == Kind::pattern_list || target.kind() == Kind::tuple_pattern)
            return assign_items(target, right);
        if (target.kind() == Kind::identifier && !is_init_) locals_.emplace_back(names_.of(target), right);
        const Symbol leaf = attribute_of_self(target);
        if (leaf.empty()) return;
        AttributeInfo& it = into_.add_attribute(leaf);
        note_writer(it);
        if (!is_init_ && right.kind() != Kind::assignment) it.assigned.push_back(local_value(right));
    }

    // `self.a, self.b = a, b`; what unpacks one value changes each attribute.
    void assign_items(Node targets, Node right) {
        const bool shown = right.kind() == Kind::expression_list || right.kind() == Kind::tuple;
        std::vector<Node> items, values;
        for (const Node part : targets.children())
            if (!part.is_token()) items.push_back(part);
        for (const Node part : right.children())
            if (!part.is_token() && part.kind() != Kind::list_splat) values.push_back(part);
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (shown && items.size() == values.size())
                assign(items[i], values[i]);
            else
                change(items[i]);
        }
    }

    // The value of a local variable of the method, when it is bound once and not in a loop; otherwise the
    // name itself.
    Node local_value(Node right) {
        if (right.kind() != Kind::identifier) return right;
        const Symbol name = names_.of(right);
        const auto is_it = [&](const auto& local) { return local.first == name; };
        if (std::ranges::count_if(locals_, is_it) != 1) return right;
        if (bound_.bindings.empty()) {
            for (const Node parameter : method_.part(Part::parameters).children())
                each_target(parameter.kind() == Kind::identifier ? parameter : parameter.child(0),
                            [&](Node n) { bound_.bind(names_.of(n), Binding::Kind::parameter); });
            scan_bindings(bound_, method_.part(Part::body), names_);
        }
        const Binding* binding = bound_.find(name);
        if (!binding || !binding->is_fixed()) return right;
        const Node value = std::ranges::find_if(locals_, is_it)->second;
        return value.kind() == Kind::assignment ? right : value;
    }

    void change(Node target) {
        const Symbol leaf = attribute_of_self(target);
        if (leaf.empty()) return;
        AttributeInfo& it = into_.add_attribute(leaf);
        note_writer(it);
        it.changed = true;
    }

    ClassInfo& into_;
    Names& names_;
    Symbol self_;
    bool is_init_;
    Node method_;
    std::vector<std::pair<Symbol, Node>> locals_;  // plain names assigned so far, with their values
    Scope bound_;                                  // names of the method; filled on first use
};

Node plain_definition(Node statement) {
    return statement.kind() == Kind::decorated_definition ? statement.part(Part::definition) : statement;
}

// Calls `each` for the methods of a class body, including those under `if` and `try`.
template <typename Each>
void each_method(Node body, const Each& each) {
    const std::uint32_t end = body ? body.end_index() : 0;
    for (Node node = body; node && node.index() < end;) {
        const Node definition = plain_definition(node);
        const bool opaque = definition.kind() == Kind::function_definition ||
                            definition.kind() == Kind::class_definition ||
                            node.kind() == Kind::expression_statement;
        if (definition.kind() == Kind::function_definition) each(node, definition);
        node = opaque ? node.next_outside() : node.next_inside();
    }
}

Method describe(Node statement, Node definition) {
    Method method{.definition = definition};
    for (const Node part : statement.children()) {
        if (part.kind() != Kind::decorator) continue;
        const std::string_view text = part.child(0).text();
        method.is_static |= text == "staticmethod";
        method.is_class_method |= text == "classmethod";
        method.is_property |= text == "property" || text.ends_with("cached_property");
    }
    return method;
}

std::size_t scope_size(const Scope* scope) { return scope ? scope->last.size() : 0; }

// `torch.bfloat16 if bf16 else None`: the low dtype of one branch. Two branches may have different ones.
Symbol low_branch(const Operand& a, const Operand& b) {
    static const Symbol kEither("torch.lowp");
    const auto low = [](const Operand& o) {
        if (o.shape != Shape::dtype || !is_low_precision(o.dtype)) return o.alternative;
        return o.constant.empty() ? kEither : o.constant;
    };
    return low(a).empty() ? low(b) : low(a);
}

}  // namespace

AttributeInfo& ClassInfo::add_attribute(Symbol leaf) {
    if (AttributeInfo* known = attribute(leaf)) return *known;
    attribute_index.insert(leaf, static_cast<std::uint32_t>(attributes.size()));
    return attributes.emplace_back();
}

ClassInfo* Classes::find(Symbol qualified) const {
    const std::uint32_t i = index_.find(qualified);
    return i == FlatMap::kAbsent ? nullptr : classes_[i].get();
}

ClassInfo& Classes::add(File& file, Symbol qualified, Node definition, std::vector<Symbol> bases) {
    if (ClassInfo* known = find(qualified)) return *known;
    index_.insert(qualified, static_cast<std::uint32_t>(classes_.size()));
    ClassInfo& it = *classes_.emplace_back(std::make_unique<ClassInfo>());
    it.name = qualified;
    it.definition = definition;
    it.bases = std::move(bases);
    it.all_known = true;
    for (const Symbol base : it.bases) {
        const ClassInfo* known = find(base);
        it.is_module |= known ? known->is_module : shape_of_class(base.str()) == Shape::module;
        it.all_known &= known ? known->all_known : file.is_library_name(base) || base.str() == "object";
    }
    read_methods(file, it);
    return it;
}

void Classes::read_methods(File& file, ClassInfo& of) const {
    const Node body = of.definition.part(Part::body);
    each_method(body, [&](Node statement, Node definition) {
        const Symbol leaf = file.names.of(definition.part(Part::name));
        if (leaf.empty()) return;
        const Method method = describe(statement, definition);
        const std::uint32_t known = of.method_index.find(leaf);
        if (known == FlatMap::kAbsent) {
            of.method_index.insert(leaf, static_cast<std::uint32_t>(of.methods.size()));
            of.methods.push_back(method);
        }
        Symbol self;
        for (const Node parameter : definition.part(Part::parameters).children()) {
            if (parameter.kind() == Kind::identifier) self = file.names.of(parameter);
            break;
        }
        if (self.empty() || method.is_static || method.is_class_method) return;
        AttributeScan(of, file.names, self, leaf.str() == "__init__").run(definition);
    });
}

const ClassInfo* Classes::owner_of(const ClassInfo& of, Symbol method) const {
    std::vector<const ClassInfo*> open{&of};
    for (std::size_t i = 0; i < open.size() && i < kMaxBases; ++i) {
        if (open[i]->method(method)) return open[i];
        for (const Symbol base : open[i]->bases)
            if (const ClassInfo* up = find(base)) open.push_back(up);
    }
    return nullptr;
}

AttributeInfo* Classes::attribute(const ClassInfo& of, Symbol leaf) const {
    std::vector<const ClassInfo*> open{&of};
    for (std::size_t i = 0; i < open.size() && i < kMaxBases; ++i) {
        if (AttributeInfo* it = const_cast<ClassInfo*>(open[i])->attribute(leaf)) return it;
        for (const Symbol base : open[i]->bases)
            if (const ClassInfo* up = find(base)) open.push_back(up);
    }
    return nullptr;
}

const Value* Classes::constant(const ClassInfo& of, Symbol leaf) const {
    std::vector<const ClassInfo*> open{&of};
    for (std::size_t i = 0; i < open.size() && i < kMaxBases; ++i) {
        const Scope* scope = open[i]->scope;
        const std::uint32_t at = scope ? scope->index.find(leaf) : FlatMap::kAbsent;
        if (at < scope_size(scope) && scope->bindings[at].is_fixed()) return &scope->last[at];
        for (const Symbol base : open[i]->bases)
            if (const ClassInfo* up = find(base)) open.push_back(up);
    }
    return nullptr;
}

Symbol Classes::outer_base(const ClassInfo& of) const {
    std::vector<const ClassInfo*> open{&of};
    for (std::size_t i = 0; i < open.size() && i < kMaxBases; ++i)
        for (const Symbol base : open[i]->bases) {
            if (const ClassInfo* up = find(base))
                open.push_back(up);
            else
                return base;
        }
    return {};
}

Value common(const Value& a, const Value& b) {
    const auto same = [](auto x, auto y, auto none) { return x == y ? x : none; };
    Value v;
    v.is.dtype = common_dtype(a.is.dtype, b.is.dtype);
    v.is.assumed = a.is.assumed || b.is.assumed;
    v.is.refers = same(a.is.refers, b.is.refers, Symbol{});
    v.is.shape = same(a.is.shape, b.is.shape, Shape::other);
    v.is.call = same(a.is.call, b.is.call, kNone);
    v.is.param = same(a.is.param, b.is.param, kNone);
    v.is.constant = same(a.is.constant, b.is.constant, Symbol{});
    if (v.is.dtype == DType::unknown) v.is.alternative = low_branch(a.is, b.is);
    v.entity = same(a.entity, b.entity, Symbol{});
    v.object = same(a.object, b.object, Symbol{});
    v.callable = a.callable && b.callable && !v.entity.empty();
    v.is_class = a.is_class && b.is_class && !v.entity.empty();
    v.is_self = a.is_self && b.is_self;
    v.contexts = same(a.contexts, b.contexts, kNone);
    if (a.display == b.display) v.display = a.display;
    return v;
}

}  // namespace mp::lint::python
