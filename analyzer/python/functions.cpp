// Extracts the bodies of a file, each after the code it depends on, and sets up each function: parameters,
// decorators, overridden methods.

#include <algorithm>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

// Library functions that, used as decorators, run the whole body in a context.
constexpr std::string_view kContextDecorators[] = {
    "autocast",       "disable_casts",    "enable_casts", "enable_grad",
    "inference_mode", "set_grad_enabled", "no_grad",
};

bool is_context_decorator(std::string_view leaf) {
    return std::find(std::begin(kContextDecorators), std::end(kContextDecorators), leaf) !=
           std::end(kContextDecorators);
}

Function function_for(const Pending& pending, FunctionKind kind, const SourceSpan& span) {
    Function f;
    f.usr = f.name = f.display = pending.usr;
    f.kind = kind;
    f.span = span;
    if (!pending.owner) return f;
    f.parent_class = pending.owner->name;
    f.bases = pending.owner->bases;
    const std::string_view leaf = last_part(pending.usr.str());
    for (const Symbol base : f.bases)
        f.overrides.push_back(Symbol(std::string(base.str()).append(1, '.').append(leaf)));
    return f;
}

// The name that a parameter binds, without stars, type and default.
Node name_of_parameter(Node parameter) {
    switch (parameter.kind()) {
        case Kind::identifier:
            return parameter;
        case Kind::default_parameter:
        case Kind::typed_default_parameter:
            return name_of_parameter(parameter.part(Part::name));
        case Kind::typed_parameter:
        case Kind::list_splat_pattern:
        case Kind::dictionary_splat_pattern:
            return name_of_parameter(parameter.child(0));
        default:
            return {};
    }
}

void bind_parameter_names(Scope& scope, Node parameters, Names& names) {
    for (const Node parameter : parameters.children())
        if (const Node name = name_of_parameter(parameter))
            scope.bind(names.of(name), Binding::Kind::parameter);
}

// A default that is a name or a literal.
bool is_plain_default(Node value) {
    switch (value.kind()) {
        case Kind::identifier:
        case Kind::integer:
        case Kind::float_:
        case Kind::string:
        case Kind::true_:
        case Kind::false_:
        case Kind::none:
            return true;
        case Kind::attribute:
            return is_plain_default(value.part(Part::object));
        case Kind::unary_operator:
            return is_plain_default(value.part(Part::argument));
        default:
            return false;
    }
}

bool has_decorator(const std::vector<Node>& decorators, std::string_view leaf) {
    for (const Node decorator : decorators)
        if (last_part(decorator.child(0).text()) == leaf) return true;
    return false;
}

bool is_context_generator(const std::vector<Node>& decorators) {
    return has_decorator(decorators, "contextmanager") || has_decorator(decorators, "asynccontextmanager");
}

// (0.9, 0.999)
bool is_tuple_of_numbers(Node node) {
    if (node.kind() != Kind::tuple) return false;
    for (const Node item : node.children())
        if (!item.is_token() && item.kind() != Kind::float_ && item.kind() != Kind::integer) return false;
    return true;
}

}  // namespace

void Builder::bind_parameters(Node parameters, bool has_self, bool is_class_method) {
    for (const Node node : parameters.children()) {
        const Node name = name_of_parameter(node);
        if (!name) continue;
        Value v;
        v.is.param = static_cast<std::int32_t>(f_.params.size());
        const Kind held = node.child(0).kind();  // `*args: Tensor` is a tuple
        const bool plain = held != Kind::list_splat_pattern && held != Kind::dictionary_splat_pattern;
        if (const Node type = node.part(Part::type); type && plain) v = annotated(v, type);
        if (f_.params.empty() && scope_.owner && is_class_method) {
            v.entity = scope_.owner->name;
            v.is_class = true;
        } else if (f_.params.empty() && scope_.owner && has_self) {
            v.object = scope_.owner->name;
            v.is.shape = scope_.owner->is_module ? Shape::module : Shape::object;
            v.is_self = true;
        }
        Parameter& made = f_.params.emplace_back();
        made.name = file_.names.of(name);
        made.dtype = v.is.dtype;
        made.shape = v.is.shape;
        if (const Node given = node.part(Part::value); given && is_plain_default(given)) {
            const Operand standard = operand(eval(given), given);
            if (is_short(standard.constant)) made.constant = standard.constant;
            if (!is_local(standard.refers)) made.refers = standard.refers;
        } else if (given && is_tuple_of_numbers(given) && is_short(file_.text_of(given))) {
            made.constant = file_.text_of(given);
        }
        assign_name(file_.names.of(name), v);
    }
}

void Builder::enter_decorators(const std::vector<Node>& decorators) {
    for (const Node decorator : decorators) {
        const Node expression = decorator.child(0);
        const bool called = expression.kind() == Kind::call;
        const Node function = called ? expression.part(Part::function) : expression;
        const bool dotted = function.kind() == Kind::identifier || function.kind() == Kind::attribute;
        if (!dotted) {
            f_.annotations.push_back(file_.text_of(expression));
            continue;
        }
        const Value meant = eval(function);
        f_.annotations.push_back(decorator_text(decorator));
        const bool library =
            file_.is_library_name(meant.entity) && is_context_decorator(last_part(meant.entity.str()));
        const bool held = called && !region_maker(meant).empty();  // half = partial(torch.autocast, "cuda")
        if (!library && !held && !file_.is_context_generator(meant.entity)) continue;
        Value context;
        if (called) {
            context = eval_context(expression);
        } else {
            Call call = make_call(expression.span(), CallKind::constructor, meant.entity);
            if (!library) call.kind = CallKind::function, call.callee = meant.entity;
            context = result_of(emit(std::move(call)), {});
        }
        Frame frame{.kind = Frame::Kind::with};
        enter(context, expression, frame.entered);
        frames_.push_back(std::move(frame));
    }
}

void Builder::run_expression(Node body) {
    const Value v = eval(body);
    f_.returned.push_back(operand(v, body));
}

void Builder::finish(Node body) {
    unwind(Way::leave, end_of(body));
    note_self_attributes();
    if (scope_.kind != Scope::Kind::function) add_definitions();
    keep_used_aliases();
    if (scope_.has_inner || scope_.kind != Scope::Kind::function) {
        scope_.last.resize(bindings_);
        for (std::size_t i = 0; i < bindings_; ++i)
            if (env_[i].set) scope_.last[i] = file_.detached(env_[i].value, f_.calls);
    }
    if (!yields_.empty()) return finish_generator();
    if (f_.flow.size() == 1) f_.flow.clear();
    f_.calls.shrink_to_fit();  // the facts of a whole program are in memory at once
    f_.flow.shrink_to_fit();
    file_.unit.functions.push_back(std::move(f_));
}

// Evaluates what the other methods assign to attributes. Only the right-hand side is evaluated, so local
// variables are unknown.
void Builder::read_attributes(ClassInfo& type) {
    for (AttributeInfo& it : type.attributes) {
        for (const Node right : it.assigned) {
            const Value v = eval(right);
            file_.add_to_attribute(it, v, f_.calls);
        }
        if (it.changed) it.value.is.constant = {};
    }
}

void extract_class_body(File& file, ClassInfo& type, Scope& around, Node node,
                        std::vector<Symbol> annotations) {
    type.scope = &file.add_scope(Scope::Kind::class_, &around, type.name);
    type.scope->owner = &type;
    const Node body = node.part(Part::body);
    scan_bindings(*type.scope, body, file.names);
    const Pending here{.node = node, .owner = &type, .usr = file.names.join(type.name, "<class>")};
    const std::size_t first = file.pending.size();
    Function made = function_for(here, FunctionKind::python, node.part(Part::name).span());
    made.annotations = std::move(annotations);
    Builder builder(file, *type.scope, std::move(made));
    builder.run(body);
    builder.finish(body);
    const Function& f = file.unit.functions.back();
    if (f.calls.empty() && f.definitions.empty() && f.annotations.empty()) file.unit.functions.pop_back();
    // The constructor is extracted first, so that the other methods know the attributes.
    const auto methods = file.pending.begin() + static_cast<std::ptrdiff_t>(first);
    const auto constructor = std::find_if(
        methods, file.pending.end(), [](const Pending& p) { return p.usr.str().ends_with(".__init__"); });
    if (constructor != file.pending.end()) std::rotate(methods, constructor, constructor + 1);
}

namespace {

// Where attributes are evaluated, names bound in methods hide those of the module, and their values are
// unknown.
void hide_names_of_methods(File& file, const ClassInfo& type, Scope& scope) {
    for (const Method& method : type.methods) {
        bind_parameter_names(scope, method.definition.part(Part::parameters), file.names);
        scan_bindings(scope, method.definition.part(Part::body), file.names);
    }
    for (Binding& binding : scope.bindings)
        if (binding.kind != Binding::Kind::import) binding.entity = {};
}

}  // namespace

void extract_body(File& file, const Pending& pending) {
    ClassInfo* const owner = pending.owner;
    const bool is_init = pending.usr.str().ends_with(".__init__");
    if (owner && !is_init && !owner->attributes_read) {
        owner->attributes_read = true;
        Scope& scope = file.add_scope(Scope::Kind::function, pending.around, owner->name);
        const std::size_t waiting = file.pending.size();
        const auto unresolved = file.unit.coverage.unresolved;
        hide_names_of_methods(file, *owner, scope);
        Builder(file, scope, Function{}).read_attributes(*owner);
        file.pending.resize(waiting);
        file.unit.coverage.unresolved = unresolved;
    }
    Scope& scope = file.add_scope(Scope::Kind::function, pending.around, pending.usr);
    const bool is_lambda = pending.node.kind() == Kind::lambda;
    const Node parameters = pending.node.part(Part::parameters), body = pending.node.part(Part::body);
    bind_parameter_names(scope, parameters, file.names);
    scan_bindings(scope, body, file.names);
    const Node name = is_lambda ? pending.node : pending.node.part(Part::name);
    Builder builder(
        file, scope,
        function_for(pending, is_lambda ? FunctionKind::lambda : FunctionKind::python, name.span()));
    builder.set_by_version(pending.by_version);
    const bool is_static = has_decorator(pending.decorators, "staticmethod");
    builder.bind_parameters(parameters, owner && !is_static,
                            owner && has_decorator(pending.decorators, "classmethod"));
    builder.enter_decorators(pending.decorators);
    if (is_context_generator(pending.decorators)) builder.split_at_yield();
    ++file.unit.coverage.functions;
    if (is_lambda)
        builder.run_expression(body);
    else
        builder.run(body);
    builder.finish(body ? body : pending.node);
}

void extract_module(File& file) {
    const Node root = file.tree.root();
    Scope& scope = file.add_scope(Scope::Kind::module, nullptr, file.names.module());
    scan_bindings(scope, root, file.names);
    file.has_stars = !scope.stars.empty();
    if (scope.stars.size() == 1) file.star = scope.stars[0];
    const Pending here{.node = root, .usr = file.names.join(file.names.module(), "<module>")};
    SourceSpan span = root.span();
    span.end_line = span.line, span.end_column = span.column;
    Builder builder(file, scope, function_for(here, FunctionKind::python, span));
    builder.run(root);
    builder.finish(root);
    ++file.unit.coverage.functions;
}

}  // namespace mp::lint::python
