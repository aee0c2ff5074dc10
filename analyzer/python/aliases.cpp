// Other names of objects: `scaler = self.scaler`, `for opt in optimizers.values()`.

#include <algorithm>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"

namespace mp::lint::python {
namespace {

bool is_dotted(Node node) {
    while (node.kind() == Kind::attribute) node = node.part(Part::object);
    return node.kind() == Kind::identifier;
}

// `state["opt"]`, `optimizers[0]`
bool is_constant_item(Node node) {
    return node.kind() == Kind::subscript && has_literal_index(node) && is_dotted(node.part(Part::value));
}

// The container in `enumerate(xs)`, `xs.values()` and `list(xs)`.
Node container_of(Node node) {
    while (node.kind() == Kind::call || node.kind() == Kind::subscript) {
        if (node.kind() == Kind::subscript) {  // self.blocks[:-1]
            if (const Node index = node.child(1); !index || index.kind() != Kind::slice) break;
            node = node.part(Part::value);
            continue;
        }
        const Node function = node.part(Part::function), first = node.part(Part::arguments).child(0);
        const std::string_view name = last_part(function.text());
        if (function.kind() == Kind::attribute && !first && (name == "values" || name == "items"))
            node = function.part(Part::object);
        else if (first && (name == "enumerate" || name == "list" || name == "tuple" || name == "reversed"))
            node = first;
        else
            break;
    }
    return node;
}

Node arguments_of_zip(Node node) {
    const bool zips = node.kind() == Kind::call && node.part(Part::function).text() == "zip";
    return zips ? node.part(Part::arguments) : Node{};
}

}  // namespace

bool Builder::is_bound_once(Symbol name) {
    const Binding* const binding = scope_.find(name);
    return binding && binding->count <= 1 && !binding->shared && !binding->elsewhere;
}

void Builder::note_alias(Node target, const Value& value, Node right) {
    const bool is_constant =
        !value.is.constant.empty() && !value.is.assumed;  // a default is another name's, too
    if (!right || !value.entity.empty() || is_constant || value.is.shape == Shape::tensor) return;
    const Symbol name = file_.names.of(target);
    if ((is_dotted(right) || is_constant_item(right)) && is_bound_once(name))
        f_.aliases.push_back({.name = name, .of = file_.names.dotted(right)});
    else if (right.kind() == Kind::call && value.is.name.str().ends_with("{}") && is_bound_once(name))
        f_.aliases.push_back({.name = name, .of = value.is.name});  // getattr(self, f"scaler{i}")
}

void Builder::note_items(Node target, Node container) {
    const Node plain = container_of(container);
    if (const Node zipped = arguments_of_zip(plain); zipped && note_pairs(target, zipped)) return;
    const Symbol of = is_dotted(plain) ? file_.names.dotted(plain) : Symbol{};
    each_target(target, [&](Node name) {
        f_.aliases.push_back({.name = file_.names.of(name), .of = of, .item = true});
    });
}

// for block, norm in zip(self.blocks, self.norms), also with a number in front of the pair
bool Builder::note_pairs(Node target, Node zipped) {
    if (target.kind() == Kind::pattern_list && target.child(1) &&
        target.child(1).kind() == Kind::tuple_pattern)
        target = target.child(1);
    if (target.kind() != Kind::pattern_list && target.kind() != Kind::tuple_pattern) return false;
    std::vector<Node> names, containers;
    for (const Node name : target.children())
        if (!name.is_token()) names.push_back(name);
    for (const Node container : zipped.children())
        if (!container.is_token()) containers.push_back(container);
    if (names.size() != containers.size()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) note_items(names[i], containers[i]);
    return true;
}

// Only objects that are given to a call, whose methods are called, or that are changed in place need their other names.
void Builder::keep_used_aliases() {
    if (f_.aliases.empty()) return;
    std::unordered_set<Symbol> used;
    const auto add_head = [&](std::string_view name) {
        if (!name.empty()) used.insert(Symbol(name.substr(0, name.find_first_of(".["))));
    };
    for (const Call& call : f_.calls)
        if (call.kind != CallKind::op || call.in_place)
            for (const Operand& argument : call.args) add_head(argument.name.str());
    for (const Block& block : f_.flow)
        for (const Edge& edge : block.to)
            if (!edge.condition.empty()) add_head(edge.condition.str());
    std::erase_if(f_.aliases, [&](const Alias& alias) { return !used.contains(alias.name); });
}

}  // namespace mp::lint::python
