#include <algorithm>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/constants.hpp"
#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/python/library/library.hpp"
#include "kernels/numerics/op_traits.hpp"

namespace mp::lint::python {
namespace {

bool is_sequence(Node node) {
    switch (node.kind()) {
        case Kind::pattern_list:
        case Kind::tuple_pattern:
        case Kind::list_pattern:
        case Kind::tuple:
        case Kind::list:
        case Kind::expression_list:
            return true;
        default:
            return false;
    }
}

std::size_t count(Node node) {
    std::size_t n = 0;
    for (const Node child : node.children()) n += child.is_token() ? 0 : 1;
    return n;
}

bool has_splat(Node node) {
    for (const Node child : node.children())
        if (child.kind() == Kind::list_splat || child.kind() == Kind::list_splat_pattern) return true;
    return false;
}

bool is_anything(const Value& v) {
    return v.object.empty() && v.is.shape == Shape::other && v.is.dtype == DType::unknown;
}

std::string_view augmented_method(std::string_view token) {
    constexpr std::pair<std::string_view, std::string_view> kMethods[] = {
        {"+=", "__iadd__"},     {"-=", "__isub__"},  {"*=", "__imul__"}, {"/=", "__itruediv__"},
        {"@=", "__imatmul__"},  {"**=", "__ipow__"}, {"%=", "__imod__"}, {"//=", "__ifloordiv__"},
        {"&=", "__iand__"},     {"|=", "__ior__"},   {"^=", "__ixor__"}, {"<<=", "__ilshift__"},
        {">>=", "__irshift__"},
    };
    for (const auto& [known, method] : kMethods)
        if (known == token) return method;
    return {};
}

AccumulateOp accumulate_op(std::string_view op) {
    if (op == "+") return AccumulateOp::add;
    if (op == "-") return AccumulateOp::subtract;
    if (op == "*") return AccumulateOp::multiply;
    return AccumulateOp::other;
}

// `a, b = x.chunk(2)`, and `values` of `values, indices = x.topk(5)`. Texts have split(), too.
bool item_is_of_tensor(const Call& call, std::size_t item) {
    if (call.args.empty()) return false;
    const Operand& whole = call.args[0];
    const bool may_be_text =
        call.op.name() == "split" && whole.shape != Shape::tensor && whole.dtype == DType::unknown;
    return !may_be_text && item_has_elements(traits_of(call.op), item);
}

// Modules whose items are called one by one.
bool is_container(std::string_view type) {
    return type == "torch.nn.ModuleList" || type == "torch.nn.ModuleDict" || type == "torch.nn.Sequential";
}

}  // namespace

void Builder::name_result(const Value& value, Symbol name) {
    if (name.empty()) return;
    for (const std::int32_t call : {value.is.call, value.branches[0], value.branches[1]}) {
        if (call == kNone) continue;
        Operand& result = f_.calls[static_cast<std::size_t>(call)].result;
        if (result.name.empty()) result.name = name;
    }
}

void Builder::assign_name(Symbol name, Value value) {
    const std::uint32_t slot = scope_.index.find(name);
    if (slot == FlatMap::kAbsent || scope_.bindings[slot].elsewhere) return;
    value.is.name = {};
    if (!parts_.empty()) forget_parts_of(name);
    if (scope_.kind != Scope::Kind::function) note_binding(slot);
    set(slot, std::move(value));
}

void Builder::note_binding(std::uint32_t slot) {
    auto it = std::ranges::find(bound_, slot, &Bound::slot);
    if (it == bound_.end()) it = bound_.insert(it, Bound{.slot = slot});
    const Kind kind = statement_node_.kind();
    it->at = statement_node_.span();
    it->in_branch = kind == Kind::if_statement || kind == Kind::try_statement;
    it->statements += it->last != statement_;
    it->last = statement_;
}

// Whether other code can use the value: a dtype, a number, a short text, a name, or an object whose making is seen.
bool Builder::is_worth_reading(const Operand& value) const {
    if (!value.constant.empty()) return is_short(value.constant) && value.constant.str() != "None";
    if (!value.refers.empty()) return !is_local(value.refers);
    if (value.shape == Shape::dtype) return value.dtype != DType::unknown;
    if (value.call == kNone) return false;
    const Call& made = f_.calls[static_cast<std::size_t>(value.call)];
    const std::string_view leaf = last_part(made.name.str());
    constexpr std::string_view kReaders[] = {
        "getattr",   "partial",    "field",      "__getitem__", "parse_args",
        "load",      "safe_load",  "get",        "full_load",   "SimpleNamespace",
        "Namespace", "ModuleList", "ModuleDict", "Sequential",  "dirname",
        "join",      "Path"};
    return is_display(made) || !made.callee.empty() || made.result.dtype != DType::unknown ||
           std::ranges::find(kReaders, leaf) != std::end(kReaders);
}

void Builder::add_definitions() {
    for (const Bound& bound : bound_) {
        const Binding& binding = scope_.bindings[bound.slot];
        const bool rebound = bound.statements > 2 || (bound.statements == 2 && !bound.in_branch);
        if (binding.kind != Binding::Kind::variable || binding.shared || binding.elsewhere || rebound)
            continue;
        if (!env_[bound.slot].set || binding.in_loop) continue;
        Operand value = nameless(env_[bound.slot].value);
        if (!is_worth_reading(value)) continue;
        value.name = {};
        f_.definitions.push_back({.span = bound.at,
                                  .name = file_.names.join(scope_.prefix, binding.name.str()),
                                  .value = std::move(value)});
    }
}

void Builder::assign(Node target, const Value& value, Node right) {
    switch (target.kind()) {
        case Kind::identifier:
            name_result(value, file_.names.of(target));
            note_alias(target, value, right);
            assign_name(file_.names.of(target), value);
            return;
        case Kind::attribute:
            assign_attribute(target, value, right);
            return;
        case Kind::subscript:
            assign_subscript(target, value, right);
            return;
        case Kind::as_pattern_target:
        case Kind::parenthesized_expression:
            assign(target.child(0), value, right);
            return;
        case Kind::list_splat:
        case Kind::list_splat_pattern:
            assign(target.child(0), {}, right);
            return;
        default:
            if (is_sequence(target)) assign_items(target, value);
    }
}

void Builder::assign_items(Node targets, const Value& value) {
    if (value.is.call != kNone) name_result(value, file_.text_of(targets));
    const Call* const call =
        value.is.call == kNone ? nullptr : &f_.calls[static_cast<std::size_t>(value.is.call)];
    std::vector<Value> items;
    std::size_t i = 0;
    for (const Node target : targets.children()) {
        if (target.is_token()) continue;
        Value& item = items.emplace_back();
        if (is_sizes(value.is)) {
            item.is.shape = Shape::scalar;
            item.is.dtype = DType::int64;
        } else if (call && item_is_of_tensor(*call, i)) {
            item.is.shape = Shape::tensor;
            item.is.dtype = call->args[0].dtype;
        } else if (call) {
            item.object = class_of_item(*call, i);
            item.is.shape = item.object.empty() ? Shape::other : shape_of_class(item.object.str());
            const std::int32_t from = passes_on_item(*call, i);
            if (from >= 0 && static_cast<std::size_t>(from) < call->args.size()) {
                const Operand& given = call->args[static_cast<std::size_t>(from)];
                const Value held = given.name.empty() ? Value{} : load_dotted(given.name);
                if (item.object.empty()) {  // it is the object that was given
                    item.object = held.object;
                    item.is.call = given.call;
                    item.is.param = given.param;
                }
                if (item.is.shape == Shape::other) item.is.shape = given.shape;
                // An engine may cast the objects that it is given.
                if (is_half(given.dtype)) item.is.dtype = given.dtype;
            }
        }
        ++i;
    }
    i = 0;
    const bool whole = !has_splat(targets);
    for (const Node target : targets.children()) {
        if (target.is_token()) continue;
        Value& item = items[i];
        const bool is_part = item.is.shape == Shape::tensor && item.is.call == kNone;
        if (whole && (is_anything(item) || is_part) && target.kind() == Kind::identifier &&
            target.text() != "_")
            item.is.call = unpacked(value, i, target).is.call;
        assign(target, item, {});
        ++i;
    }
}

// `a, b = f(x)` reads items. They are resolved through the returned value of the program's own function, or
// through the value that a parameter holds.
Value Builder::unpacked(const Value& value, std::size_t item, Node target) {
    if (value.is.call != kNone) {
        const Call& made = f_.calls[static_cast<std::size_t>(value.is.call)];
        const std::string_view name = made.name.str();
        const bool forward = name.ends_with(".__call__") || name.ends_with(".forward");
        const bool may_hold =
            !made.callee.empty() || forward || item_is_of_tensor(made, item) || fills_classes(made);
        if (made.kind == CallKind::constructor || !may_hold) return {};
    } else if (value.is.param == kNone) {
        return {};
    }
    Call read = make_call(target.span(), CallKind::op);
    read.name = symbol("?.__getitem__");
    Operand of = value.is;
    of.span = target.span();
    Operand index;
    index.dtype = DType::int64;
    index.shape = Shape::scalar;
    index.constant = Symbol(std::to_string(item));
    read.args = {std::move(of), std::move(index)};
    Value v;
    v.is.call = emit(std::move(read));
    return v;
}

Value Builder::load_dotted(Symbol name) {
    if (const Value* known = known_dotted(name)) return *known;
    return name.str().find('.') == std::string_view::npos ? load(name) : Value{};
}

// `a, b = b, a`: evaluates all values before it binds the first target.
void Builder::assign_pairwise(Node targets, Node values) {
    std::vector<std::pair<Value, Node>> items;
    for (const Node value : values.children())
        if (!value.is_token()) items.emplace_back(eval(value), value);
    std::size_t i = 0;
    for (const Node target : targets.children()) {
        if (target.is_token()) continue;
        assign(target, items[i].first, items[i].second);
        ++i;
    }
}

void Builder::add_setting(Symbol key, Operand value, Node node) {
    Setting& setting = f_.settings.emplace_back();
    setting.span = node.span();
    setting.key = key;
    setting.value = std::move(value);
    setting.block = block_;
}

void Builder::note_self_attributes() {
    if (!scope_.owner) return;
    // Sorted by slot, which is the order of the source. The order of Symbols differs between runs.
    std::ranges::sort(of_self_, {}, &std::pair<Symbol, std::uint32_t>::second);
    of_self_.erase(std::unique(of_self_.begin(), of_self_.end()), of_self_.end());
    for (const auto& [leaf, slot] : of_self_) {
        AttributeInfo* const it = scope_.owner->attribute(leaf);
        if (!it || !env_[slot].set) continue;
        const Value& value = env_[slot].value;
        file_.add_to_attribute(*it, value, f_.calls);
        const Operand kept = nameless(value);
        const bool told = others_tell(kept) || is_worth_reading(kept);
        // An annotation tells the class of a parameter, and not which object it is.
        const bool is_passed = kept.param > 0 && kept.call == kNone;
        const bool plain = value.object.empty() || is_container(value.object.str()) || is_passed;
        if (plain && !it->outside_init && !it->changed && told)
            f_.settings.push_back(
                {.span = f_.span, .key = Symbol("self." + std::string(leaf.str())), .value = kept});
    }
}

// Whether the value depends on other functions of the program: it is a parameter, a result of one of them,
// or the result of a method or wrapper of these: model.to(device).
bool Builder::others_tell(const Operand& value) const {
    constexpr int kDeepest = 8;
    const Operand* at = &value;
    for (int depth = 0; at->call >= 0 && depth < kDeepest; ++depth) {
        const Call& call = f_.calls[static_cast<std::size_t>(at->call)];
        if (call.kind == CallKind::function && !call.callee.empty()) return true;
        if (call.args.empty() || call.kind == CallKind::op) return false;
        at = &call.args[0];
    }
    return at->param > 0;
}

void Builder::assign_attribute(Node target, const Value& value, Node right) {
    const Node object_node = target.part(Part::object);
    const Value object = eval(object_node);
    const Symbol leaf = file_.names.of(target.part(Part::attribute));
    if (!object.entity.empty()) {
        // A setting replaces what a module or class of the program binds to the name.
        if (!object.is_class || file_.is_project_name(object.entity))
            add_setting(file_.names.join(object.entity, leaf.str()), operand(value, right), target);
        return;
    }
    if (object.is.name.empty()) return;
    const Symbol dotted = file_.names.dotted(target);
    name_result(value, dotted);
    Value kept = value;
    kept.is.name = {};
    set(slot_of(dotted), std::move(kept));
    if (object.is_self && f_.name.str().ends_with(".__init__")) of_self_.emplace_back(leaf, slot_of(dotted));
}

void Builder::assign_subscript(Node target, const Value& value, Node right) {
    const Node object_node = target.part(Part::value), index_node = target.part(Part::subscript);
    const Value object = eval(object_node), index = eval(index_node);
    if (object.entity.str() == "os.environ") {
        const auto key = string_content(index_node);
        if (key)
            add_setting(file_.names.join(object.entity, Symbol(*key).str()), operand(value, right), target);
        return;
    }
    if (!object.entity.empty() || !right) return;
    const bool tensor = object.is.shape == Shape::tensor;
    Call call = make_call(target.span(), CallKind::op);
    call.name = file_.names.join(symbol(tensor ? "torch.Tensor" : "?"), "__setitem__");
    call.in_place = true;
    call.args = {operand(object, object_node), operand(index, index_node), operand(value, right)};
    emit(std::move(call));
}

void Builder::visit_assignment(Node node) {
    const Node left = node.part(Part::left), right = node.part(Part::right);
    if (!right) return;  // `x: int`
    // `a = b = f()`: the value is the innermost right-hand side.
    std::vector<Node> targets{left};
    Node source = right;
    for (; source.kind() == Kind::assignment; source = source.part(Part::right))
        targets.push_back(source.part(Part::left));
    if (targets.size() == 1 && is_sequence(left) && is_sequence(source) && count(left) == count(source) &&
        !has_splat(left) && !has_splat(source)) {
        assign_pairwise(left, source);
        return;
    }
    Value value = eval(source);
    if (targets.size() == 1 && source.kind() == Kind::binary_operator && loop_depth_ > 0)
        note_sum(node, left, source, value);
    if (value.is.shape == Shape::other && node.part(Part::type))
        value = annotated(value, node.part(Part::type));
    // A field of a dataclass and its like: who makes the object may give another value.
    value.is.assumed |= scope_.kind == Scope::Kind::class_ && node.part(Part::type);
    if (targets.size() == 1) note_unused(value, node, left);
    for (const Node target : targets) assign(target, value, source);
}

// `acc = acc + x` in a loop.
void Builder::note_sum(Node node, Node target, Node sum, const Value& result) {
    const Node a = sum.part(Part::left), b = sum.part(Part::right);
    const bool first = a.text() == target.text(), second = b.text() == target.text();
    if (first == second || result.is.call == kNone) return;
    const Call& call = f_.calls[static_cast<std::size_t>(result.is.call)];
    if (call.kind != CallKind::op || call.args.size() != 2) return;
    const std::string_view op = sum.operator_token().text();
    if (op != "+" && (op != "*" && op != "-")) return;
    Value old, added;
    old.is = call.args[first ? 0 : 1];
    added.is = call.args[first ? 1 : 0];
    accumulate(node, target, old, added, op, result.is.call, false);
}

// q = buffer.clone() / q[rows] = q[rows] + bias: the elements belong to a tensor that this round of the loop has made.
bool Builder::is_part_of_new(Node target) const {
    if (target.kind() != Kind::subscript) return false;
    const Node whole = target.part(Part::value);
    const std::uint32_t slot =
        whole.kind() == Kind::identifier ? scope_.index.find(file_.names.dotted(whole)) : FlatMap::kAbsent;
    if (slot == FlatMap::kAbsent || !env_[slot].set || loop_ == 0 || env_[slot].loop != loop_) return false;
    const std::int32_t made = env_[slot].value.is.call;
    if (made == kNone) return false;
    const Call& call = f_.calls[static_cast<std::size_t>(made)];
    const Traits traits = call.op.known() ? traits_of(call.op) : traits_of(last_part(call.name.str()));
    static constexpr auto kNew = {Trait::writes_constants, Trait::samples, Trait::elementwise,
                                  Trait::product};
    return !call.in_place && std::ranges::any_of(kNew, [&](Trait each) { return traits.has(each); });
}

void Builder::accumulate(Node node, Node target, const Value& old, const Value& added, std::string_view op,
                         std::int32_t call, bool compound) {
    if (!added.is.constant.empty()) return;
    const bool is_name = target.kind() == Kind::identifier;
    const Symbol name =
        is_name || target.kind() == Kind::attribute ? file_.names.dotted(target) : file_.text_of(target);
    const std::uint32_t slot = is_name ? scope_.index.find(name) : dotted_.find(name);
    const bool known = slot != FlatMap::kAbsent && env_[slot].set;
    const bool member = target.kind() == Kind::attribute;
    if (loop_depth_ == 0 && !member) return;
    if (known && env_[slot].loop == loop_ && loop_ != 0) return;  // starts anew in every iteration
    if (is_part_of_new(target)) return;
    Accumulation it;
    it.span = node.span();
    it.name = name;
    it.dtype = old.is.dtype;
    it.element = added.is.dtype;
    it.shape = old.is.shape;
    it.op = accumulate_op(op);
    it.form = loop_depth_ == 0 ? AccumulateForm::member
              : compound       ? AccumulateForm::compound
                               : AccumulateForm::assign;
    it.storage = member                             ? Storage::member
                 : target.kind() == Kind::subscript ? Storage::array
                 : old.is.param != kNone            ? Storage::parameter
                                                    : Storage::local;
    it.loop_depth = loop_depth_;
    if (is_name && known) it.trips = rounds_since(env_[slot].loop);
    it.call = call;
    f_.accumulations.push_back(it);
}

void Builder::visit_augmented(Node node) {
    const Node target = node.part(Part::left), right = node.part(Part::right);
    const Value old = eval(target), added = eval(right);
    const std::string_view token = node.operator_token().text();
    const std::string_view method = augmented_method(token);
    const bool text = added.is.constant.str().starts_with('\'') || old.is.constant.str().starts_with('\'');
    Value result;
    if (!method.empty() && !text && !(is_plain(old) && is_plain(added))) {
        result = operate(method, node, old, target, added, right, true);
        accumulate(node, target, old, added, token.substr(0, token.size() - 1), result.is.call, true);
        const Symbol name =
            target.kind() == Kind::subscript ? file_.text_of(target) : file_.names.dotted(target);
        name_result(result, name);
    } else {
        result.is.shape = old.is.shape;
    }
    result.object = old.object;
    if (result.is.shape == Shape::other) result.is.shape = old.is.shape;
    if (result.is.dtype == DType::unknown && old.is.shape == Shape::tensor) result.is.dtype = old.is.dtype;
    std::uint32_t slot = FlatMap::kAbsent;
    if (target.kind() == Kind::identifier) slot = scope_.index.find(file_.names.of(target));
    if (target.kind() == Kind::attribute) slot = dotted_.find(file_.names.dotted(target));
    if (slot != FlatMap::kAbsent) set(slot, result, false);
}

// `x: torch.Tensor`: the annotation is used where nothing better is known.
Value Builder::annotated(Value value, Node type) {
    Node named = type.kind() == Kind::type ? type.child(0) : type;
    if (named.kind() == Kind::string) return value;
    if (named.kind() != Kind::identifier && named.kind() != Kind::attribute) {
        // `Optional[X]` and `X | None` count as X: code that uses the value has checked for None.
        const Node first = named.child(0), second = named.child(1);
        const bool optional = first.text() == "Optional" || first.text().ends_with(".Optional");
        if (named.kind() == Kind::binary_operator && second.kind() == Kind::none)
            return annotated(value, first);
        if (optional && second)
            return annotated(value, second.kind() == Kind::other ? second.child(0) : second);
        return value;
    }
    const Value meant = named.kind() == Kind::identifier ? load(named) : eval_attribute(named);
    if (meant.entity.empty()) return value;
    const std::string_view name = meant.entity.str();
    const Shape shape = shape_of_class(name);
    if (name == "float" || name == "int" || name == "bool") value.is.shape = Shape::scalar;
    if (name == "str" || name == "dict" || name == "list") value.is.shape = Shape::object;
    if (shape != Shape::other) value.is.shape = shape;
    if (shape == Shape::tensor) value.is.dtype = dtype_named(name);
    const bool project =
        meant.is_class || (file_.is_project_name(meant.entity) && is_capitalised(last_part(name)));
    if (project) {
        const ClassInfo* known = file_.classes.find(meant.entity);
        value.is.shape = known && known->is_module ? Shape::module : Shape::object;
    }
    if (project || (shape != Shape::other && shape != Shape::tensor && shape != Shape::dtype))
        value.object = meant.entity;
    return value;
}

}  // namespace mp::lint::python
