#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

constexpr std::size_t kMaxChoices = 8;  // of one variable; with more, the variable is unknown

constexpr std::size_t kMaxCalls = 100'000;  // in one function; beyond it, __exit__ calls are not added
                                            // (hostile input)

// The class or function whose __enter__ and __exit__ `with X()` runs: the class of a constructor, else the
// function.
Symbol context_usr(const Call& made) {
    const std::string_view usr = made.callee.str();
    constexpr std::string_view kInit = ".__init__";
    return usr.ends_with(kInit) ? Symbol(usr.substr(0, usr.size() - kInit.size())) : made.callee;
}

bool does_nothing(const Call& made) { return last_part(made.name.str()) == "nullcontext"; }

}  // namespace

std::vector<Choice> Builder::choices_of(const Value& value) const {
    if (value.contexts != kNone) return file_.choices[static_cast<std::size_t>(value.contexts)];
    if (value.is.call == kNone || value.is.shape == Shape::tensor || value.is.shape == Shape::scalar)
        return {};
    const Call& made = f_.calls[static_cast<std::size_t>(value.is.call)];
    if (made.kind == CallKind::op || is_display(made)) return {};
    return {{.made = made, .call = value.is.call, .owner = number_}};
}

std::int32_t Builder::keep_choices(std::vector<Choice> choices) {
    if (choices.size() > kMaxChoices) return kNone;
    file_.choices.push_back(std::move(choices));
    return static_cast<std::int32_t>(file_.choices.size() - 1);
}

Value Builder::eval_context(Node expression) {
    // `with a and b:` enters b alone: a context manager is true, and what is not true cannot be entered.
    if (expression.kind() == Kind::boolean_operator && expression.operator_token().text() == "and") {
        eval(expression.part(Part::left));
        return eval_context(expression.part(Part::right));
    }
    const Value value = eval(expression);
    if (value.is.call != kNone && expression.kind() == Kind::call) {
        Call& made = f_.calls[static_cast<std::size_t>(value.is.call)];
        if (made.kind == CallKind::function && made.callee.empty()) made.kind = CallKind::constructor;
    }
    return value;
}

void Builder::enter(const Value& context, Node node, std::vector<Entered>& entered) {
    const std::vector<Choice> choices = choices_of(context);
    for (const Choice& choice : choices)
        if (choices.size() == 1 || !does_nothing(choice.made)) enter_choice(choice, context, node, entered);
    if (!choices.empty()) return;
    const Callee callee = method_of(context, node, symbol("__enter__"));
    const std::string_view name = callee.name.str(), usr = callee.usr.str();
    constexpr std::size_t kTail = std::string_view(".__enter__").size();
    Entered it{.name = Symbol(name.substr(0, name.size() - kTail))};
    if (!usr.empty()) it.usr = Symbol(usr.substr(0, usr.size() - kTail));
    Call call = make_call(node.span(), CallKind::method, callee.name, callee.usr);
    call.args.push_back(operand(context, node));
    it.object = call.args[0];
    it.call = emit(std::move(call));
    entered.push_back(it);
}

void Builder::enter_choice(const Choice& choice, const Value& context, Node node,
                           std::vector<Entered>& entered) {
    const Call& made = choice.made;
    Entered it{.name = made.name, .usr = context_usr(made)};
    it.object = make_operand(Shape::object);
    it.object.name = context.is.name;
    it.object.text = file_.text_of(node);
    it.object.span = node.span();
    if (choice.owner == number_) it.object.call = choice.call;
    Call call = make_call(node.span(), CallKind::method);
    call.name = file_.names.join(it.name, "__enter__");
    if (!it.usr.empty()) call.callee = file_.names.join(it.usr, "__enter__");
    call.args.push_back(it.object);
    for (std::size_t i = made.kind == CallKind::method ? 1 : 0; i < made.args.size(); ++i) {
        call.args.push_back(made.args[i]);
        if (choice.owner == number_) continue;
        detach(call.args.back());
    }
    if (!choice.condition.empty()) {
        Operand when = make_operand(Shape::other);
        when.text = choice.condition;
        when.keyword = symbol("<when>");
        if (!choice.when) when.constant = symbol("false");
        call.args.push_back(when);
    }
    it.call = emit(std::move(call));
    entered.push_back(it);
}

void Builder::emit_exit(const Entered& entered, const SourceSpan& span) {
    Call call = make_call(span, CallKind::method);
    call.name = file_.names.join(entered.name, "__exit__");
    if (!entered.usr.empty()) call.callee = file_.names.join(entered.usr, "__exit__");
    call.args.push_back(entered.object);
    call.args[0].call = entered.call;
    emit(std::move(call));
}

void Builder::emit_exits(const Frame& frame, const SourceSpan& span) {
    if (f_.calls.size() > kMaxCalls) return;
    for (std::size_t i = frame.entered.size(); i-- > 0;) emit_exit(frame.entered[i], span);
}

bool Builder::is_exit_stack(const Value& value) const {
    if (value.is.call == kNone) return false;
    return last_part(f_.calls[static_cast<std::size_t>(value.is.call)].name.str()).ends_with("ExitStack");
}

void Builder::enter_item(Node item, Frame& frame) {
    Node value_node = item.part(Part::value), target;
    if (!value_node) value_node = item.child(0);
    if (value_node.kind() == Kind::as_pattern) {
        target = value_node.part(Part::alias);
        value_node = value_node.child(0);
    }
    // `with (a, b):` parses as one tuple.
    if (value_node.kind() == Kind::tuple && !target) {
        for (const Node part : value_node.children()) {
            if (part.is_token()) continue;
            const bool aliased = part.kind() == Kind::as_pattern;
            const Node inner = aliased ? part.child(0) : part;
            const Value context = eval_context(inner);
            enter(context, inner, frame.entered);
            if (aliased) assign(part.part(Part::alias), {}, inner);
        }
        return;
    }
    const Value context = eval_context(value_node);
    enter(context, value_node, frame.entered);
    if (!target) return;
    Value bound;
    bound.object = context.object;
    bound.is.shape = context.is.shape == Shape::module ? Shape::object : context.is.shape;
    if (frame.entered.size() == 1) bound.is.call = frame.entered[0].call;
    if (is_exit_stack(context))
        frame.stack = file_.names.of(target.kind() == Kind::as_pattern_target ? target.child(0) : target);
    assign(target, bound, value_node);
}

void Builder::visit_with(Node node) {
    frames_.push_back({.kind = Frame::Kind::with});
    const std::size_t place = frames_.size() - 1;
    Frame frame{.kind = Frame::Kind::with};
    for (const Node clause : node.children()) {
        if (clause.kind() != Kind::with_clause) continue;
        for (const Node item : clause.children())
            if (item.kind() == Kind::with_item) enter_item(item, frame);
    }
    frames_[place] = frame;
    // An exception inside the block exits the contexts before it reaches the handlers.
    const std::int32_t handler = handler_;
    std::uint32_t landing = 0;
    if (handler != kNone) {
        landing = new_block();
        handler_ = static_cast<std::int32_t>(landing);
        const std::uint32_t body = new_block();
        go(body);
        start(body);
        raise_edge();
    }
    const Node body = node.part(Part::body);
    run(body);
    handler_ = handler;
    Frame done = std::move(frames_[place]);
    frames_.pop_back();
    const SourceSpan end = end_of(body ? body : node);
    if (reachable_) emit_exits(done, end);
    if (handler == kNone || !has_entry(landing)) return;
    const std::uint32_t block = block_;
    const bool reachable = reachable_;
    start(landing);
    emit_exits(done, end);
    edge(block_, static_cast<std::uint32_t>(handler), {}, true, true);
    block_ = block;
    reachable_ = reachable;
}

// `stack.enter_context(X())`: X is exited together with the stack.
void Builder::enter_on_stack(const Value& context, Symbol stack, Node node) {
    std::vector<Entered> entered;
    enter(context, node, entered);
    for (std::size_t i = frames_.size(); i-- > 0;) {
        Frame& frame = frames_[i];
        if (frame.kind != Frame::Kind::with || (frame.stack != stack || stack.empty())) continue;
        frame.entered.insert(frame.entered.end(), entered.begin(), entered.end());
        return;
    }
}

void Builder::enter_by_hand(const Callee& callee, Node node) {
    std::vector<Entered> entered;
    enter(callee.receiver, callee.receiver_node, entered);
    for (const Entered& it : entered) {
        f_.calls[static_cast<std::size_t>(it.call)].span = node.span();
        by_hand_.push_back(it);
    }
}

void Builder::link_exit(Call& call) {
    if (call.args.empty()) return;
    for (std::size_t i = by_hand_.size(); i-- > 0;) {
        const Entered& it = by_hand_[i];
        const bool same_name = !it.object.name.empty() && it.object.name == call.args[0].name;
        const bool same_call = it.object.call != kNone && it.object.call == call.args[0].call;
        if (!same_name && !same_call) continue;
        call.name = file_.names.join(it.name, "__exit__");
        if (!it.usr.empty()) call.callee = file_.names.join(it.usr, "__exit__");
        call.args[0].call = it.call;
        return;
    }
}

}  // namespace mp::lint::python
