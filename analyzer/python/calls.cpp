#include <algorithm>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/constants.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

constexpr int kMaxNesting = 8;  // of a configuration that is flattened

// Larger dictionaries, and those made this many calls ago, are no arguments of one call.
constexpr std::size_t kMostEntries = 64;
constexpr std::ptrdiff_t kFarthestUse = 2000;

// Methods that every module inherits from torch.nn.Module.
// clang-format off: a table
constexpr std::string_view kModuleMethods[] = {
    "add_module",   "apply",           "bfloat16",         "buffers",          "children",
    "cpu",          "cuda",            "double",           "eval",             "float",
    "forward",      "half",            "load_state_dict",  "modules",          "named_buffers",
    "named_children", "named_modules", "named_parameters", "parameters",       "register_buffer",
    "register_module", "register_parameter", "requires_grad_", "state_dict",   "to",
    "to_empty",     "train",           "type",             "zero_grad",
};
// clang-format on

bool is_module_method(std::string_view leaf) {
    return std::find(std::begin(kModuleMethods), std::end(kModuleMethods), leaf) != std::end(kModuleMethods);
}

// DTYPES[name], getattr(torch, name)
bool is_read_from_table(const Function& f, const Operand& value) {
    if (value.call == kNone) return false;
    const std::string_view leaf = last_part(f.calls[static_cast<std::size_t>(value.call)].name.str());
    return leaf == "__getitem__" || leaf == "get" || leaf == "getattr";
}

// `net.to(DTYPE)` with a dtype that only the link stage knows.
bool casts_to_open_dtype(const Function& f, const Call& call) {
    const std::string_view leaf = last_part(call.name.str());
    return (leaf == "to" || leaf == "type") && std::ranges::any_of(call.args, [&](const Operand& o) {
               const bool named = o.keyword.str() == "dtype";
               if (o.dtype != DType::unknown || o.shape == Shape::module) return false;
               if (!named && !o.keyword.empty()) return false;
               return named || !o.refers.empty() || !o.alternative.empty() || is_read_from_table(f, o);
           });
}

// What it gives depends on the value of its receiver.
bool reads_items(const Call& call) {
    const std::string_view leaf = last_part(call.name.str());
    return leaf == "get" || leaf == "__call__" || leaf == "values" || leaf == "items";
}

}  // namespace

Operand Builder::operand(const Value& value, Node node) {
    Operand o = nameless(value);
    o.text = file_.text_of(node);
    o.span = node.span();
    return o;
}

// Without the place and the spelling in the source.
Operand Builder::nameless(const Value& value) const {
    Operand o = value.is;
    if (o.constant.empty() && !value.entity.empty() &&
        (value.callable || value.is_class || file_.is_library_name(value.entity)))
        o.constant = value.entity;
    if (o.constant.empty() && file_.is_project_name(value.entity)) o.refers = value.entity;
    return o;
}

std::int32_t Builder::emit(Call call) {
    call.block = block_;
    call.loop_depth = loop_depth_;
    call.by_version = by_version_;
    complete(call, f_, file_.sets_default_dtype ? DType::unknown : DType::fp32);
    // The class of a receiver is looked up by its call, parameter or name; `out.logits` is a tensor.
    if (call.kind == CallKind::method && !call.args.empty() && !reads_items(call) &&
        !(call.op.known() && is_local(call.args[0].refers)))
        call.args[0].refers = {};
    f_.calls.push_back(std::move(call));
    raise_edge();
    return static_cast<std::int32_t>(f_.calls.size() - 1);
}

Value Builder::result_of(std::int32_t index, const std::vector<Value>& arguments) {
    const Call& call = f_.calls[static_cast<std::size_t>(index)];
    Value v;
    v.is = call.result;
    v.is.call = index;
    v.object = class_of(call);
    const std::int32_t from = passes_on(call);
    if (from < 0 || static_cast<std::size_t>(from) >= arguments.size()) return v;
    const Value& given = arguments[static_cast<std::size_t>(from)];
    if (v.object.empty()) v.object = given.object, v.entity = given.entity, v.callable = given.callable;
    if (v.is.shape == Shape::other) v.is.shape = given.is.shape;
    if (v.is.dtype == DType::unknown && !casts_to_open_dtype(f_, call)) v.is.dtype = given.is.dtype;
    return v;
}

Builder::Callee Builder::method_of_class(Symbol type, Symbol leaf) {
    Callee callee{.kind = CallKind::method, .name = file_.names.join(type, leaf.str())};
    const Symbol module("torch.nn.Module");
    if (const ClassInfo* known = file_.classes.find(type)) {
        if (const ClassInfo* owner = file_.classes.owner_of(*known, leaf)) {
            callee.name = callee.usr = file_.names.join(owner->name, leaf.str());
            return callee;
        }
        const Symbol outer = file_.classes.outer_base(*known);
        if (known->is_module && known->all_known) {
            callee.name = file_.names.join(is_module_method(leaf.str()) ? module : outer, leaf.str());
        } else if (!known->all_known) {
            callee.usr = callee.name;
        }
        return callee;
    }
    const Shape shape = shape_of_class(type.str());
    if (shape == Shape::tensor) callee.name = file_.names.join(symbol("torch.Tensor"), leaf.str());
    if (shape == Shape::module && is_module_method(leaf.str()) && leaf.str() != "forward")
        callee.name = file_.names.join(module, leaf.str());
    if (file_.is_project_name(type)) callee.usr = callee.name;
    return callee;
}

// `self.f()`, where no class of the file has f: a method that only subclasses have, unless a library's class has it.
Symbol Builder::method_of_subclass(Symbol type, Symbol leaf) const {
    const ClassInfo* known = file_.classes.find(type);
    if (!known || is_module_method(leaf.str())) return {};
    const Symbol outer = file_.classes.outer_base(*known);
    const bool ours = outer.empty() || outer.str() == "torch.nn.Module";
    return ours ? file_.names.join(type, leaf.str()) : Symbol{};
}

Builder::Callee Builder::method_of(const Value& object, Node object_node, Symbol leaf) {
    Callee callee;
    if (object.is_super) {
        const ClassInfo* type = file_.classes.find(object.object);
        for (const Symbol base : type ? type->bases : std::vector<Symbol>{}) {
            callee = method_of_class(base, leaf);
            if (!callee.usr.empty()) break;
        }
        if (callee.name.empty()) callee.name = file_.names.join(symbol("?"), leaf.str());
    } else if (!object.object.empty()) {
        callee = method_of_class(object.object, leaf);
        if (object.is_self && callee.usr.empty()) callee.usr = method_of_subclass(object.object, leaf);
    } else {
        const bool tensor = object.is.shape == Shape::tensor;
        const bool module = object.is.shape == Shape::module;
        const Symbol type = symbol(tensor ? "torch.Tensor" : module ? "torch.nn.Module" : "?");
        callee.name = file_.names.join(type, leaf.str());
        if (!tensor && !module) ++file_.unit.coverage.unresolved;
    }
    callee.kind = CallKind::method;
    callee.has_receiver = true;
    callee.receiver = object;
    callee.receiver_node = object_node;
    return callee;
}

Builder::Callee Builder::callee_of(const Value& value, Node node) {
    if (value.is_class) {
        Callee callee = method_of_class(value.entity, symbol("__init__"));
        if (callee.usr.empty()) callee.usr = file_.names.join(value.entity, "__init__");
        callee.kind = CallKind::constructor;
        callee.name = callee.makes = value.entity;
        return callee;
    }
    if (value.callable) return {.name = value.entity, .usr = value.entity};
    if (!value.entity.empty()) {
        Callee callee{.name = value.entity};
        if (!file_.is_project_name(value.entity)) return callee;
        const std::string_view whole = value.entity.str(), leaf = last_part(whole);
        if (leaf.size() < whole.size()) {  // `Net.apply(x)`
            const Symbol type = symbol(whole.substr(0, whole.size() - leaf.size() - 1));
            if (file_.classes.find(type)) callee.usr = method_of_class(type, symbol(leaf)).usr;
            if (file_.classes.find(type)) return callee;
        }
        callee.usr = value.entity;
        if (is_capitalised(last_part(value.entity.str()))) {
            callee.kind = CallKind::constructor;
            callee.usr = file_.names.join(value.entity, "__init__");
            callee.makes = value.entity;
        }
        return callee;
    }
    Symbol call = symbol("__call__");
    const ClassInfo* type = value.object.empty() ? nullptr : file_.classes.find(value.object);
    const bool project = !type && !value.object.empty() && file_.is_project_name(value.object);
    if (value.is.shape == Shape::module || project ||
        (type && !file_.classes.owner_of(*type, call) &&
         (type->is_module || file_.classes.owner_of(*type, symbol("forward")))))
        call = symbol("forward");
    return method_of(value, node, call);
}

Builder::Callee Builder::resolve(Node function) {
    if (function.kind() == Kind::identifier) return callee_of(load(function), function);
    if (function.kind() != Kind::attribute) return callee_of(eval(function), function);
    const Node object_node = function.part(Part::object), leaf_node = function.part(Part::attribute);
    const Value object = eval(object_node);
    const Symbol leaf = file_.names.of(leaf_node);
    if (!object.entity.empty()) return callee_of(attribute_of_value(object, function, leaf_node), function);
    if (object.is_super) return method_of(object, object_node, leaf);
    // `self.net(x)`: the object in the attribute is called, unless the class has a method of this name.
    const ClassInfo* type = object.object.empty() ? nullptr : file_.classes.find(object.object);
    if (type && file_.classes.owner_of(*type, leaf)) return method_of(object, object_node, leaf);
    const Symbol dotted = object.is.name.empty() ? Symbol{} : file_.names.dotted(function);
    const Value* known = dotted.empty() ? nullptr : known_dotted(dotted);
    const AttributeInfo* attribute = type ? file_.classes.attribute(*type, leaf) : nullptr;
    if (!known && attribute) known = &attribute->value;
    if (!known) return method_of(object, object_node, leaf);
    Value held = *known;
    held.is.name = dotted;
    return callee_of(held, function);
}

void Builder::add_argument(Node node, Symbol keyword, Call& call, std::vector<Value>& values) {
    Value v = eval(node);
    call.args.push_back(operand(v, node));
    call.args.back().keyword = keyword;
    if (v.callable) call.lambdas.push_back(v.entity);
    values.push_back(std::move(v));
}

void Builder::eval_arguments(Node arguments, Call& call, std::vector<Value>& values) {
    if (arguments.kind() == Kind::generator_expression) {
        add_argument(arguments, {}, call, values);
        return;
    }
    std::size_t count = call.args.size();
    for (const Node argument : arguments.children()) count += argument.is_token() ? 0 : 1;
    call.args.reserve(count);
    values.reserve(count);
    for (const Node argument : arguments.children()) {
        if (argument.is_token()) continue;
        switch (argument.kind()) {
            case Kind::keyword_argument:
                add_argument(argument.part(Part::value), file_.names.of(argument.part(Part::name)), call,
                             values);
                call.args.back().span = argument.span();  // an edit replaces all of `dtype=x`
                break;
            case Kind::list_splat:
                add_argument(argument.child(0), symbol("*"), call, values);
                break;
            case Kind::dictionary_splat:
                add_argument(argument.child(0), symbol("**"), call, values);
                spread_dictionary(call, values);
                break;
            default:
                add_argument(argument, {}, call, values);
        }
    }
}

// `f(**options)` after `options = dict(dtype=x)` or `{"dtype": x}` is f(dtype=x), unless something else can change it.
void Builder::spread_dictionary(Call& call, std::vector<Value>& values) {
    const auto entries = entries_of(call.args.back());
    if (!entries) return;
    call.args.pop_back();
    values.pop_back();
    for (const Operand& entry : *entries) {
        call.args.push_back(entry);
        call.args.back().span = {};  // no edit of this call
        values.emplace_back().is = entry;
    }
}

// The entries of a dictionary that this function makes, with their keys as keywords, and with what it stores in
// `options["dtype"]` since. Nothing when a key is not known, or when other code gets the dictionary.
std::optional<std::vector<Operand>> Builder::entries_of(const Operand& dictionary) const {
    if (dictionary.call == kNone) return std::nullopt;
    const Call& made = f_.calls[static_cast<std::size_t>(dictionary.call)];
    const Call* const end = f_.calls.data() + f_.calls.size();
    if (made.name.str() != "dict" || made.args.size() > kMostEntries || end - &made > kFarthestUse)
        return std::nullopt;
    if (made.loop_depth != loop_depth_) return std::nullopt;  // the rest of a loop is not read yet
    std::vector<Operand> entries = made.args;
    for (const Operand& o : entries)
        if (o.keyword.empty() || o.keyword.str().starts_with('*')) return std::nullopt;
    if (dictionary.name.empty()) return entries;
    const auto is_it = [&](const Operand& o) { return o.name == dictionary.name && o.keyword.str() != "**"; };
    for (const Call* later = &made + 1; later != end; ++later) {
        if (std::ranges::none_of(later->args, is_it)) continue;
        const std::string_view key = later->args.size() == 3 ? later->args[1].constant.str() : "";
        const bool stores = last_part(later->name.str()) == "__setitem__" && key.starts_with('\'');
        if (!stores || later->loop_depth != loop_depth_ || entries.size() > kMostEntries) return std::nullopt;
        const bool always = later->block == made.block || later->block == block_;
        store_entry(entries, Symbol(key.substr(1, key.size() - 2)), later->args[2], always);
    }
    return entries;
}

void Builder::store_entry(std::vector<Operand>& entries, Symbol key, const Operand& stored, bool always) {
    auto entry = std::ranges::find(entries, key, &Operand::keyword);
    Value before, now;
    if (entry == entries.end())
        entry = entries.emplace(entry);
    else
        before.is = *entry;
    now.is = stored;
    *entry = always ? stored : common(before, now).is;
    entry->keyword = key;
}

// getattr(self, f"scaler{i}") and setattr(self, f"scaler{i}", x): one attribute stands for all that the text names.
std::optional<Value> Builder::eval_by_name(bool sets, Node arguments) {
    const Node object_node = arguments ? arguments.child(0) : Node{};
    if (!object_node || object_node.kind() != Kind::identifier) return std::nullopt;
    const std::string text = attribute_text(arguments.child(1));
    const Value object = eval(object_node);
    if (text.empty() || !object.is_self || object.is.name.empty()) return std::nullopt;
    const Symbol leaf(text), dotted = file_.names.join(object.is.name, leaf.str());
    if (sets) {
        set_attribute(dotted, leaf, arguments.child(2));
        return Value{};
    }
    Value found;
    const ClassInfo* type = object.object.empty() ? nullptr : file_.classes.find(object.object);
    const AttributeInfo* attribute = type ? file_.classes.attribute(*type, leaf) : nullptr;
    if (const Value* known = known_dotted(dotted))
        found = *known;
    else if (attribute && attribute->set)
        found = attribute->value;
    else if (!attribute)
        return std::nullopt;
    found.is.name = dotted;
    return found;
}

void Builder::set_attribute(Symbol dotted, Symbol leaf, Node value_node) {
    Value value = eval(value_node);
    name_result(value, dotted);
    value.is.name = {};
    set(slot_of(dotted), std::move(value));
    if (f_.name.str().ends_with(".__init__")) of_self_.emplace_back(leaf, slot_of(dotted));
}

// self.register_buffer(f"inv_freq_{i}", x): the name is "inv_freq_{}", as getattr() of an f-string reads it.
void Builder::name_buffer(Call& call, Node arguments) {
    const std::string name = arguments ? attribute_text(arguments.child(0)) : std::string{};
    if (call.args.size() < 2 || name.empty() || !call.args[1].constant.empty()) return;
    call.args[1].constant = Symbol("'" + name + "'");
}

// self.add_module(f"layer{i}", Layer(n))
bool Builder::add_module(const Callee& callee, Node arguments) {
    const std::string_view method = last_part(callee.name.str());
    if (method != "add_module" && method != "register_module") return false;
    const Value& object = callee.receiver;
    const std::string leaf = arguments ? attribute_text(arguments.child(0)) : std::string{};
    if (leaf.empty() || !object.is_self || object.is.name.empty() || !arguments.child(1)) return false;
    set_attribute(file_.names.join(object.is.name, leaf), Symbol(leaf), arguments.child(1));
    return true;
}

// Calls of names that the language itself defines.
std::optional<Value> Builder::eval_special(const Callee& callee, Node node, Node arguments) {
    const std::string_view name = callee.name.str();
    if (name == "super") {
        Value v;
        v.object = scope_.owner ? scope_.owner->name : Symbol{};
        v.is_super = true;
        return v;
    }
    if (name == "float" && arguments) {
        const Node text = arguments.child(0);
        const auto content = text ? string_content(text) : std::nullopt;
        if (!content || text.kind() != Kind::string) return std::nullopt;
        std::string lower(*content);
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (lower.starts_with('+')) lower.erase(0, 1);
        if (const std::size_t tail = lower.find("inity"); tail != std::string::npos) lower.erase(tail);
        const auto n = number_of(lower);
        if (!n) return std::nullopt;
        Value v;
        v.is.shape = Shape::scalar;
        v.is.constant = Symbol(number_text(n->value, false));
        return v;
    }
    const bool sets = name == "setattr";
    if ((sets || name == "getattr") && arguments && arguments.child(sets ? 2 : 1) &&
        !arguments.child(sets ? 3 : 2))
        return eval_by_name(sets, arguments);
    if (callee.has_receiver && add_module(callee, arguments)) return Value{};
    if (callee.has_receiver && last_part(name) == "__enter__") {
        enter_by_hand(callee, node);
        return Value{};
    }
    return std::nullopt;
}

Value Builder::eval_call(Node node) {
    const Callee callee = resolve(node.part(Part::function));
    const Node arguments = node.part(Part::arguments);
    if (auto special = eval_special(callee, node, arguments)) return *special;
    Call call = make_call(node.span(), callee.kind, callee.name, callee.usr);
    std::vector<Value> values;
    if (callee.has_receiver) {
        call.args.push_back(operand(callee.receiver, callee.receiver_node));
        values.push_back(callee.receiver);
    }
    eval_arguments(arguments, call, values);
    if (callee.has_receiver && last_part(call.name.str()) == "__exit__") link_exit(call);
    if (last_part(call.name.str()) == "register_buffer") name_buffer(call, arguments);
    const std::int32_t index = emit(std::move(call));
    after_call(index, callee, values, arguments);
    Value v = result_of(index, values);
    if (!callee.makes.empty()) {
        const ClassInfo* type = file_.classes.find(callee.makes);
        v.object = callee.makes;
        v.is.shape = type && type->is_module ? Shape::module : Shape::object;
        f_.calls[static_cast<std::size_t>(index)].result.shape = v.is.shape;
    }
    if (callee.has_receiver && !callee.receiver.region_condition.empty())
        v.contexts = keep_choices({{.made = f_.calls[static_cast<std::size_t>(index)],
                                    .call = index,
                                    .owner = number_,
                                    .condition = callee.receiver.region_condition,
                                    .when = callee.receiver.region_when}});
    if (callee.name.str() == "functools.partial" && !values.empty()) {
        v.makes_region = region_maker(values[0]);
        if (values[0].callable) v.entity = values[0].entity, v.callable = true;
    }
    return v;
}

void Builder::after_call(std::int32_t index, const Callee& callee, const std::vector<Value>& values,
                         Node arguments) {
    Call& call = f_.calls[static_cast<std::size_t>(index)];
    if (call.kind == CallKind::function && call.callee.empty() && class_of(call) == call.name)
        call.kind = CallKind::constructor;
    // `net.half()` changes the module itself.
    if (callee.has_receiver && callee.receiver.is.shape == Shape::module &&
        call.result.dtype != DType::unknown && passes_on(call) == 0) {
        Value changed = callee.receiver;
        changed.is.dtype = call.result.dtype;
        if (callee.receiver_node.kind() == Kind::identifier) {
            const std::uint32_t slot = scope_.index.find(callee.receiver.is.name);
            if (slot != FlatMap::kAbsent && env_[slot].set) set(slot, changed, false);
        } else if (!callee.receiver.is.name.empty()) {
            set(slot_of(callee.receiver.is.name), changed, false);
        }
    }
    if (last_part(call.name.str()) == "enter_context" && values.size() == 2 && callee.has_receiver) {
        enter_on_stack(values[1], callee.receiver.is.name, arguments.child(0));
        return;
    }
    if (callee.receiver.is_self && values.size() >= 3 && f_.name.str().ends_with(".__init__") &&
        last_part(call.name.str()) == "register_buffer")
        if (const auto name = string_content(arguments.child(0))) {
            const Symbol leaf(*name);
            of_self_.emplace_back(leaf, slot_of(file_.names.join(callee.receiver.is.name, leaf.str())));
            set(of_self_.back().second, values[2]);
        }
    if (call.name.str().starts_with("os.")) add_environment(callee, call, arguments);
    if (!file_.is_library_name(call.name)) return;
    for (const Value& value : values)
        if (value.display.kind() == Kind::dictionary && flattened_.insert(value.display.index()).second)
            flatten(value.display, {}, 0);
}

// A configuration passed to a library: one setting per entry, "fp16.enabled".
void Builder::flatten(Node dictionary, const std::string& prefix, int depth) {
    for (const Node pair : dictionary.children()) {
        if (pair.kind() != Kind::pair) continue;
        const auto key = string_content(pair.part(Part::key));
        if (!key) continue;
        const std::string name = prefix.empty() ? *key : prefix + "." + *key;
        const Node value = pair.part(Part::value);
        if (value.kind() == Kind::dictionary) {
            if (depth < kMaxNesting) flatten(value, name, depth + 1);
            continue;
        }
        Operand operand = make_operand(Shape::other);
        operand.text = file_.text_of(value);
        operand.span = value.span();
        // The dictionary was evaluated already at its own place, so only literals are read again.
        if (value.kind() != Kind::list && !value.has_call()) operand.constant = eval(value).is.constant;
        add_setting(Symbol(name), operand, pair);
    }
}

void Builder::add_environment(const Callee& callee, const Call& call, Node arguments) {
    const std::string_view name = callee.name.str();
    const Symbol environment("os.environ");
    const auto key_of = [](Node node) { return string_content(node).value_or(std::string{}); };
    if (name == "os.environ.setdefault" || name == "os.putenv") {
        const std::string key = arguments.child(0) ? key_of(arguments.child(0)) : std::string{};
        if (!key.empty() && call.args.size() >= 2)
            add_setting(file_.names.join(environment, Symbol(key).str()), call.args[1], arguments);
    }
    if (name != "os.environ.update") return;
    const std::vector<Operand> operands = call.args;
    for (const Operand& argument : operands) {
        if (!argument.keyword.empty() && argument.keyword.str() != "**")
            add_setting(file_.names.join(environment, argument.keyword.str()), argument, arguments);
        if (argument.call == kNone) continue;
        const std::vector<Operand> items = f_.calls[static_cast<std::size_t>(argument.call)].args;
        for (const Operand& item : items)
            if (!item.keyword.empty())
                add_setting(file_.names.join(environment, item.keyword.str()), item, arguments);
    }
}

}  // namespace mp::lint::python
