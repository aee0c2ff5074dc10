#include <algorithm>
#include <cctype>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/constants.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kMaxItems = 64;  // of a display, kept as operands

struct Operator {
    std::string_view token;
    std::string_view method;
};

constexpr Operator kOperators[] = {
    {"+", "__add__"},     {"-", "__sub__"},  {"*", "__mul__"}, {"/", "__truediv__"},
    {"@", "__matmul__"},  {"**", "__pow__"}, {"%", "__mod__"}, {"//", "__floordiv__"},
    {"&", "__and__"},     {"|", "__or__"},   {"^", "__xor__"}, {"<<", "__lshift__"},
    {">>", "__rshift__"}, {"<", "__lt__"},   {">", "__gt__"},  {"<=", "__le__"},
    {">=", "__ge__"},     {"==", "__eq__"},  {"!=", "__ne__"},
};

std::string_view method_of_operator(std::string_view token) {
    for (const Operator& it : kOperators)
        if (it.token == token) return it.method;
    return {};
}

Value number(double value, bool whole) {
    Value v;
    v.is.shape = Shape::scalar;
    v.is.constant = Symbol(number_text(value, whole));
    return v;
}

Value scalar() {
    Value v;
    v.is.shape = Shape::scalar;
    return v;
}

// The name of a class, not of a value or a constant: `Box[int]` makes no item.
bool is_generic(std::string_view name) {
    return is_capitalised(name) &&
           std::ranges::any_of(name, [](unsigned char c) { return std::islower(c) != 0; });
}

bool is_text(const Value& v) { return v.is.constant.str().starts_with('\''); }

}  // namespace

bool Builder::is_sizes(const Operand& value) { return value.name.str().ends_with(".shape"); }

bool Builder::is_plain(const Value& v) {
    return v.is.shape == Shape::scalar || v.is.shape == Shape::dtype || !v.is.constant.empty();
}

Value Builder::eval(Node node) {
    switch (node.kind()) {
        case Kind::identifier: {
            const Value v = load(node);
            note_use(v, node);
            return v;
        }
        case Kind::integer:
        case Kind::float_: {
            const auto n = number_of(node.text());
            return n ? number(n->value, n->whole) : scalar();
        }
        case Kind::true_:
        case Kind::false_: {
            Value v = scalar();
            v.is.constant = symbol(node.kind() == Kind::true_ ? "true" : "false");
            return v;
        }
        case Kind::none: {
            Value v;
            v.is.shape = Shape::object;
            v.is.constant = symbol("None");
            return v;
        }
        case Kind::string:
        case Kind::concatenated_string:
            return eval_string(node);
        case Kind::attribute:
            return eval_attribute(node);
        case Kind::subscript:
            return eval_subscript(node);
        case Kind::call:
            return eval_call(node);
        case Kind::binary_operator:
            return eval_binary(node);
        case Kind::unary_operator:
            return eval_unary(node);
        case Kind::comparison_operator:
            return eval_comparison(node);
        case Kind::boolean_operator:
            return eval_boolean(node);
        case Kind::not_operator:
            eval_children(node);
            return scalar();
        case Kind::conditional_expression:
            return eval_conditional(node);
        case Kind::lambda:
            return eval_lambda(node);
        case Kind::list:
        case Kind::list_pattern:
            return eval_display(node, "list");
        case Kind::set:
            return eval_display(node, "set");
        case Kind::tuple:
        case Kind::tuple_pattern:
        case Kind::expression_list:
        case Kind::pattern_list:
            return eval_display(node, "tuple");
        case Kind::dictionary:
            return eval_dictionary(node);
        case Kind::list_comprehension:
        case Kind::set_comprehension:
        case Kind::dictionary_comprehension:
        case Kind::generator_expression:
            return eval_comprehension(node);
        case Kind::await:
        case Kind::parenthesized_expression:
            if (const Node inner = node.child(0)) return eval(inner);
            return {};
        case Kind::named_expression:
            return eval_named(node);
        case Kind::yield:
            return eval_yield(node);
        case Kind::type:
        case Kind::comment:
            return {};
        default:
            return eval_children(node);
    }
}

Value Builder::eval_children(Node node) {
    for (const Node child : node.children())
        if (!child.is_token()) eval(child);
    return {};
}

Value Builder::eval_string(Node node) {
    Value v;
    v.is.shape = Shape::object;
    if (const auto content = string_content(node)) {
        std::string text = "'" + content->substr(0, 80);
        v.is.constant = Symbol(text += '\'');
        return v;
    }
    if (node.has_call())
        for (Node part = node.next_inside(); node.contains(part);) {
            const bool inside = part.kind() == Kind::interpolation;
            if (inside) eval_children(part);
            part = inside ? part.next_outside() : part.next_inside();
        }
    return v;
}

Value Builder::eval_named(Node node) {
    Value v = eval(node.part(Part::value));
    const Node name = node.part(Part::name);
    if (inner_.empty()) {
        assign(name, v, node.part(Part::value));
    } else {
        assign_name(file_.names.of(name), v);
    }
    return v;
}

Value Builder::eval_yield(Node node) {
    Value given;
    Node shown;
    bool delegates = false;
    for (const Node child : node.children()) {
        if (child.is_token())
            delegates |= child.text() == "from";
        else
            given = eval(shown = child);
    }
    if (splits_at_yield_ && inner_.empty()) {
        const std::uint32_t after = new_block();
        yields_.emplace_back(block_, after);
        go(after);
        start(after);
    } else if (given.is.call != kNone && inner_.empty()) {
        return_items(node, given, shown, delegates);
    }
    return {};
}

// A generator returns what it yields, like a list of it.
void Builder::return_items(Node node, const Value& item, Node shown, bool delegates) {
    if (delegates) return f_.returned.push_back(operand(item, shown));
    Call list = make_call(node.span(), CallKind::constructor, symbol("list"));
    list.args.push_back(operand(item, shown));
    f_.returned.push_back(operand(result_of(emit(std::move(list)), {}), node));
}

Value Builder::eval_attribute(Node node) {
    const Value object = eval(node.part(Part::object));
    Value v = attribute_of_value(object, node, node.part(Part::attribute));
    if (!object.entity.empty()) note_use(v, node);
    return v;
}

// What is not called here: run = ext.run_gpu if x.is_cuda else ext.run_cpu; or an object that the module made.
void Builder::note_use(const Value& v, Node node) {
    Symbol used = v.entity;
    if (used.empty() && v.is.shape == Shape::object)
        used =
            scope_.kind == Scope::Kind::module ? file_.names.join(scope_.prefix, node.text()) : v.is.refers;
    if (used.empty() || node.parent().kind() == Kind::attribute || used.str().starts_with("torch.")) return;
    file_.unit.taken.push_back(used);
}

Value Builder::attribute_of_value(const Value& object, Node node, Node leaf_node) {
    const Symbol leaf = file_.names.of(leaf_node);
    Value v;
    if (!object.entity.empty()) {
        v = entity_value(file_.names.join(object.entity, leaf.str()), Binding::Kind::import);
        if (object.is_class) {
            const ClassInfo* type = file_.classes.find(object.entity);
            v.callable = type && file_.classes.owner_of(*type, leaf);
        }
    }
    if (!object.is.name.empty()) v.is.name = file_.names.dotted(node);
    if (!object.entity.empty()) return v;
    if (!v.is.name.empty()) {
        if (const Value* known = known_dotted(v.is.name)) {
            Value found = *known;
            found.is.name = v.is.name;
            return found;
        }
    }
    const Symbol name = v.is.name;
    if (const ClassInfo* type = object.object.empty() ? nullptr : file_.classes.find(object.object)) {
        if (const ClassInfo* owner = file_.classes.owner_of(*type, leaf)) {
            if (owner->method(leaf)->is_property && !object.is_super) {
                Call call = make_call(node.span(), CallKind::method);
                call.callee = call.name = file_.names.join(owner->name, leaf.str());
                call.args.push_back(operand(object, node.part(Part::object)));
                v = result_of(emit(std::move(call)), {});
            } else {
                v.entity = file_.names.join(owner->name, leaf.str());
                v.callable = true;
            }
            v.is.name = name;
            return v;
        }
        const AttributeInfo* set_by_method = file_.classes.attribute(*type, leaf);
        if (set_by_method && set_by_method->set) {
            v = set_by_method->value;
            v.is.name = name;
            const bool open = v.is.shape == Shape::other || v.is.shape == Shape::scalar;
            if (open && v.is.dtype == DType::unknown && v.entity.empty() && v.object.empty() &&
                v.is.constant.empty())
                v.is.refers = part_of(object, leaf);
            return v;
        }
        if (const Value* of_class = set_by_method ? nullptr : file_.classes.constant(*type, leaf)) {
            v = *of_class;
            v.is.name = name;
            return v;
        }
    }
    const Attribute known = attribute_of(object.is, object.object, leaf.str());
    v.is.dtype = known.dtype;
    v.is.shape = known.shape;
    v.object = known.type;
    const bool open = known.dtype == DType::unknown && known.type.empty() &&
                      (known.shape == Shape::other || known.shape == Shape::dtype);
    if (open) v.is.refers = part_of(object, leaf);
    return v;
}

// What `object.leaf` refers to, for the link stage.
Symbol Builder::part_of(const Value& object, Symbol leaf) {
    const auto numbered = [&](char mark, std::int32_t at) {
        return file_.names.join(Symbol(mark + std::to_string(at)), leaf.str());
    };
    if (!object.is.refers.empty()) return file_.names.join(object.is.refers, leaf.str());
    if (object.is.call != kNone) return numbered('@', object.is.call);
    if (!object.object.empty() && file_.is_project_name(object.object))
        return file_.names.join(object.object, leaf.str());
    return object.is.param != kNone ? numbered('#', object.is.param) : Symbol{};
}

Value Builder::eval_subscript(Node node) {
    const Node object_node = node.part(Part::value);
    const Value object = eval(object_node);
    Call call = make_call(node.span(), CallKind::op);
    call.args.push_back(operand(object, object_node));
    bool first = true, slices = false;
    for (const Node index : node.children()) {
        if (first || index.is_token()) {
            first = false;
            continue;
        }
        slices |= index.kind() == Kind::slice;
        call.args.push_back(operand(eval(index), index));
    }
    const bool counts = is_sizes(call.args[0]) && !slices;
    // `list[int]`, `os.environ["X"]`: not tensors. Only the latter becomes a fact.
    const bool environment = object.entity.str() == "os.environ";
    const bool imported = file_.is_project_name(object.entity) && !object.is_class && !object.callable &&
                          !is_generic(last_part(object.entity.str()));
    if (!object.entity.empty() && !environment && !imported) return object;
    if (is_text(object)) return {};
    const bool tensor = object.is.shape == Shape::tensor;
    call.name = environment ? symbol("os.environ.__getitem__")
                : tensor    ? symbol("torch.Tensor.__getitem__")
                            : symbol("?.__getitem__");
    Value item = result_of(emit(std::move(call)), {object});
    if (counts) item.is.shape = Shape::scalar, item.is.dtype = DType::int64;
    return item;
}

Value Builder::operate(std::string_view method, Node node, const Value& left, Node left_node,
                       const Value& right, Node right_node, bool in_place) {
    const bool tensor = left.is.shape == Shape::tensor || right.is.shape == Shape::tensor;
    Call call = make_call(node.span(), CallKind::op);
    call.name = file_.names.join(symbol(tensor ? "torch.Tensor" : "?"), method);
    call.in_place = in_place;
    call.args.reserve(2);
    call.args.push_back(operand(left, left_node));
    if (right_node) call.args.push_back(operand(right, right_node));
    return result_of(emit(std::move(call)), {});
}

Value Builder::eval_binary(Node node) {
    const Node left_node = node.part(Part::left), right_node = node.part(Part::right);
    const Value left = eval(left_node), right = eval(right_node);
    const std::string_view token = node.operator_token().text();
    const bool joins_path =
        token == "/" && is_text(right) && !is_plain(left);  // Path("configs") / "base.yaml"
    if ((is_text(left) || is_text(right)) && !joins_path) return scalar();
    if (is_plain(left) && is_plain(right)) {
        const auto a = number_of(left.is.constant.str()), b = number_of(right.is.constant.str());
        if (a && b)
            if (const auto n = fold(token, *a, *b)) return number(n->value, n->whole);
        // Rules follow the weight of an average: 1 - decay. Of other arithmetic on numbers there is no fact.
        if (token != "-" || !a || a->value != 1 || !right.is.constant.empty()) return scalar();
        Value rest = operate("__sub__", node, left, left_node, right, right_node);
        rest.is.shape = Shape::scalar;
        return rest;
    }
    const std::string_view method = method_of_operator(token);
    return method.empty() ? Value{} : operate(method, node, left, left_node, right, right_node);
}

Value Builder::eval_unary(Node node) {
    const Node inner = node.part(Part::argument);
    const Value v = eval(inner);
    const std::string_view token = node.operator_token().text();
    if (is_plain(v)) {
        const auto n = number_of(v.is.constant.str());
        if (n && token == "-") return number(-n->value, n->whole);
        return n && token == "+" ? v : scalar();
    }
    return operate(token == "-"   ? "__neg__"
                   : token == "+" ? "__pos__"
                                  : "__invert__",
                   node, v, inner, {}, {});
}

Value Builder::eval_comparison(Node node) {
    Value left, result = scalar();
    Node left_node;
    std::string_view token;
    for (const Node child : node.children()) {
        if (child.is_token()) {
            token = child.text();
            continue;
        }
        Value right = eval(child);
        const std::string_view method = left_node ? method_of_operator(token) : std::string_view{};
        const bool text = is_text(left) || is_text(right);
        if (!method.empty() && !text && !(is_plain(left) && is_plain(right)))
            result = operate(method, node, left, left_node, right, child);
        left = std::move(right);
        left_node = child;
    }
    return result;
}

Value Builder::eval_boolean(Node node) {
    const Node left_node = node.part(Part::left), right_node = node.part(Part::right);
    if (!right_node.has_call()) {
        const Value left = eval(left_node);
        return common(left, eval(right_node));
    }
    const bool is_and = node.operator_token().text() == "and";
    const Value left = eval(left_node);
    bool when = true;
    const Symbol text = stable_text(left_node, when);
    const std::uint32_t rest = new_block(), after = new_block();
    edge(block_, rest, text, when == is_and);
    edge(block_, after, text, when != is_and);
    start(rest);
    const std::size_t since = mark();
    const Value right = eval(right_node);
    go(after);
    const bool alive = reachable_;
    Delta changed = take(since);
    start(after);
    merge({{.changed = std::move(changed), .alive = alive}, {}});
    return join(left, right, {}, true);
}

// `scaler` of `scaler = GradScaler() if amp else None`, if it keeps that value: later tests of it are decided with
// the branch.
Symbol Builder::name_that_may_be_none(Node conditional) {
    const bool may_be =
        conditional.child(0).kind() == Kind::none || conditional.child(2).kind() == Kind::none;
    Node value = conditional, statement = conditional.parent();
    for (; statement.kind() == Kind::parenthesized_expression; statement = statement.parent())
        value = statement;
    if (!may_be || statement.kind() != Kind::assignment || statement.part(Part::right) != value) return {};
    const Node target = statement.part(Part::left);
    if (target.kind() != Kind::identifier || !is_stable(target)) return {};
    return file_.text_of(target);
}

void Builder::go_with(Symbol name, bool is_none, std::uint32_t to) {
    if (name.empty()) return go(to);
    const std::uint32_t told = new_block();
    edge(block_, told, Symbol(std::string(name.str()) + " is None"), is_none);
    edge(told, to, name, !is_none);
    reachable_ = false;
}

Value Builder::eval_conditional(Node node) {
    const Node yes_node = node.child(0), condition = node.child(1), no_node = node.child(2);
    if (!no_node) return eval_children(node);
    bool when = true;
    if (!yes_node.has_call() && !no_node.has_call()) {
        eval(condition);
        const Symbol text = condition_text(condition, when);
        const Value yes = eval(yes_node);
        return join(yes, eval(no_node), text, when);
    }
    const std::uint32_t yes = new_block(), no = new_block(), after = new_block();
    const Symbol text = condition_text(condition, when), name = name_that_may_be_none(node);
    branch(condition, yes, no);
    const bool outer = std::exchange(by_version_, by_version_ || asks_for_version(condition.text()));
    start(yes, has_entry(yes));
    const std::size_t since = mark();
    const Value a = eval(yes_node);
    go_with(name, yes_node.kind() == Kind::none, after);
    Delta first = take(since);
    start(no, has_entry(no));
    const Value b = eval(no_node);
    by_version_ = outer;
    go_with(name, no_node.kind() == Kind::none, after);
    Delta second = take(since);
    start(after);
    merge({{.changed = std::move(first)}, {.changed = std::move(second)}});
    Value either = join(a, b, text, when);
    if (either.is.call == kNone) either.branches = {a.is.call, b.is.call};
    return either;
}

Value Builder::eval_display(Node node, std::string_view name) {
    Call call = make_call(node.span(), CallKind::constructor, symbol(name));
    for (const Node item : node.children()) {
        if (item.is_token()) continue;
        const bool spread = item.kind() == Kind::list_splat;
        const Value v = eval(spread ? item.child(0) : item);
        if (call.args.size() >= kMaxItems) continue;
        call.args.push_back(operand(v, item));
        if (spread) call.args.back().keyword = symbol("*");
        if (v.callable) call.lambdas.push_back(v.entity);
    }
    Value v = result_of(emit(std::move(call)), {});
    v.display = node;
    return v;
}

Value Builder::eval_dictionary(Node node) {
    Call call = make_call(node.span(), CallKind::constructor, symbol("dict"));
    for (const Node item : node.children()) {
        if (item.is_token()) continue;
        Symbol keyword;
        Node value_node = item.child(0);
        if (item.kind() == Kind::pair) {
            const Value key = eval(item.part(Part::key));
            if (const auto text = string_content(item.part(Part::key)); text && is_text(key))
                keyword = Symbol(*text);
            value_node = item.part(Part::value);
        } else if (item.kind() == Kind::dictionary_splat) {
            keyword = symbol("**");
        }
        const Value v = eval(value_node);
        if (call.args.size() >= kMaxItems) continue;
        call.args.push_back(operand(v, value_node));
        call.args.back().keyword = keyword;
    }
    Value v = result_of(emit(std::move(call)), {});
    v.display = node;
    return v;
}

Value Builder::eval_lambda(Node node) {
    Value v;
    v.entity = file_.name_of_lambda(scope_.prefix, node);
    v.callable = true;
    scope_.has_inner = true;
    file_.pending.push_back({.node = node, .around = &scope_, .usr = v.entity});
    return v;
}

Value Builder::eval_comprehension(Node node) {
    Value item;
    const std::uint16_t depth = loop_depth_;
    const std::size_t names = inner_.size();
    const Node body = node.part(Part::body);
    for (const Node clause : node.children()) {
        if (clause.kind() == Kind::if_clause) eval_children(clause);
        if (clause.kind() != Kind::for_in_clause) continue;
        const Value iterated = eval(clause.part(Part::right));
        ++loop_depth_;
        each_target(clause.part(Part::left), [&](Node name) {
            const bool whole = clause.part(Part::left).kind() == Kind::identifier;
            inner_.emplace_back(file_.names.of(name), whole ? item_of(iterated) : Value{});
        });
        if (!binds_local(clause.part(Part::left)))
            note_items(clause.part(Part::left), clause.part(Part::right));
        std::vector<std::pair<Node, Value>> members;
        find_members(clause.part(Part::left), iterated.is, members);
        for (auto& [name, value] : members) {
            name_result(value, file_.names.of(name));
            inner_.emplace_back(file_.names.of(name), std::move(value));
        }
    }
    if (body.kind() == Kind::pair) {
        eval(body.part(Part::key));
        item = eval(body.part(Part::value));
    } else {
        item = eval(body);
    }
    loop_depth_ = depth;
    inner_.resize(names);
    const bool is_dict = body.kind() == Kind::pair;
    // nn.ModuleList(Block() for _ in range(n)) holds objects, like a list.
    const bool is_list = node.kind() == Kind::list_comprehension ||
                         (node.kind() == Kind::generator_expression && is_made(item));
    if (!is_list && !is_dict) return {};
    Call call = make_call(node.span(), CallKind::constructor, symbol(is_dict ? "dict" : "list"));
    const Node shown = is_dict ? body.part(Part::value) : body;
    call.args.push_back(operand(item, shown));
    return result_of(emit(std::move(call)), {});
}

// Whether a variable of the function has the name of a target.
bool Builder::binds_local(Node target) const {
    bool found = false;
    each_target(target, [&](Node name) { found |= scope_.find(file_.names.of(name)) != nullptr; });
    return found;
}

// Whether a constructor made it.
bool Builder::is_made(const Value& value) const {
    const std::int32_t at = value.is.call;
    return at != kNone && f_.calls[static_cast<std::size_t>(at)].kind == CallKind::constructor;
}

// One item of the iterated value.
Value Builder::item_of(const Value& iterated) {
    Value v;
    if (iterated.is.shape == Shape::parameters || iterated.is.shape == Shape::tensor) {
        v.is.shape = Shape::tensor;
        v.is.dtype = iterated.is.dtype;
    }
    return v;
}

}  // namespace mp::lint::python
