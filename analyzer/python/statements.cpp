#include <algorithm>
#include <array>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {

void Builder::run(Node body) {
    if (!body) return;
    const bool outermost = !std::exchange(runs_, true);
    for (const Node statement : body.children()) {
        if (statement.is_token()) continue;
        if (outermost) ++statement_, statement_node_ = statement;
        visit(statement);
    }
    if (outermost) runs_ = false;
}

void Builder::visit(Node node) {
    const Kind kind = node.kind();
    if (kind == Kind::block || kind == Kind::error || kind == Kind::module) return run(node);
    ++file_.unit.coverage.statements;
    if (!reachable_ && kind != Kind::function_definition && kind != Kind::class_definition &&
        kind != Kind::decorated_definition)
        return;
    switch (kind) {
        case Kind::expression_statement:
            return visit_expression_statement(node);
        case Kind::if_statement:
            return visit_if(node);
        case Kind::for_statement:
            return visit_for(node);
        case Kind::while_statement:
            return visit_while(node);
        case Kind::try_statement:
            return visit_try(node);
        case Kind::with_statement:
            return visit_with(node);
        case Kind::match_statement:
            return visit_match(node);
        case Kind::return_statement:
            return visit_return(node);
        case Kind::raise_statement:
            eval_children(node);
            return unwind(Way::raise, node.span());
        case Kind::break_statement:
            return unwind(Way::break_, node.span());
        case Kind::continue_statement:
            return unwind(Way::continue_, node.span());
        case Kind::import_statement:
        case Kind::import_from_statement:
            return visit_import(node);
        case Kind::function_definition:
            return visit_function(node, {});
        case Kind::class_definition:
            return visit_class(node, {});
        case Kind::decorated_definition:
            return visit_decorated(node);
        case Kind::future_import_statement:
        case Kind::global_statement:
        case Kind::nonlocal_statement:
        case Kind::pass_statement:
        case Kind::delete_statement:
            return;
        default:
            eval_children(node);
    }
}

namespace {

// `print(...)`, `logger.info(...)`: a statement that only tells something.
bool tells(Node statement) {
    constexpr std::array<std::string_view, 7> kTell{"print", "info",  "debug", "warning",
                                                    "warn",  "error", "log"};
    const Node call = statement.child(0);
    return statement.kind() == Kind::expression_statement && call.kind() == Kind::call &&
           !statement.child(1) &&
           std::ranges::find(kTell, last_part(call.part(Part::function).text())) != kTell.end();
}

bool only_tells(Node block) {
    bool any = false;
    for (const Node statement : block.children()) {
        if (!tells(statement)) return false;
        any = true;
    }
    return any;
}

bool has_other_branch(Node node) {
    for (const Node clause : node.children())
        if (clause.kind() == Kind::elif_clause || clause.kind() == Kind::else_clause) return true;
    return false;
}

}  // namespace

void Builder::visit_expression_statement(Node node) {
    const std::size_t first = f_.calls.size();
    for (const Node child : node.children()) {
        switch (child.kind()) {
            case Kind::assignment:
                visit_assignment(child);
                break;
            case Kind::augmented_assignment:
                visit_augmented(child);
                break;
            case Kind::string:
                break;  // documentation
            default:
                if (!child.is_token()) {
                    note_unused(eval(child), child);
                    note_told(first, child);
                }
        }
    }
}

void Builder::visit_if(Node node) {
    const std::uint32_t after = new_block();
    const bool outer = by_version_;
    std::vector<Branch> branches;
    bool when = true;
    const Symbol text = condition_text(node.part(Part::condition), when);
    const auto run_branch = [&](Node body) {
        const std::size_t since = mark();
        run(body);
        const bool alive = reachable_;
        go(after);
        branches.push_back({.changed = take(since), .alive = alive});
    };
    const auto test = [&](Node clause) {
        const std::uint32_t yes = new_block(), no = new_block();
        const std::size_t first = f_.calls.size();
        branch(clause.part(Part::condition), yes, no);
        if (only_tells(clause.part(Part::consequence)) && !has_other_branch(node)) note_told(first);
        by_version_ = by_version_ || asks_for_version(clause.part(Part::condition).text());
        start(yes);
        run_branch(clause.part(Part::consequence));
        start(no);
    };
    test(node);
    bool has_else = false;
    for (const Node clause : node.children()) {
        if (clause.kind() == Kind::elif_clause) test(clause);
        if (clause.kind() != Kind::else_clause) continue;
        has_else = true;
        run_branch(clause.part(Part::body));
    }
    if (!has_else) {
        branches.push_back({.alive = reachable_});
        go(after);
    }
    by_version_ = outer;
    start(after);
    merge(branches, text, when);
}

// `for x in xs`, and the second target of `for i, x in enumerate(xs)` and `for name, x in xs.items()`.
void Builder::assign_loop_target(Node target, const Value& iterated) {
    if (target.kind() == Kind::identifier) return assign(target, item_in_loop(iterated, target), {});
    assign(target, {}, {});
    const bool pair = target.kind() == Kind::pattern_list || target.kind() == Kind::tuple_pattern;
    if (!pair || iterated.is.call == kNone) return;
    const Call& made = f_.calls[static_cast<std::size_t>(iterated.is.call)];
    const std::string_view leaf = last_part(made.name.str());
    if ((leaf != "enumerate" && leaf != "items") || made.args.empty()) return;
    Value of;
    of.is = made.args[0];
    Node second;
    std::size_t count = 0;
    for (const Node part : target.children())
        if (!part.is_token() && ++count == 2) second = part;
    if (count == 2 && second.kind() == Kind::identifier) assign(second, item_in_loop(of, second), {});
}

// One item of the iterated value. Items of a list that an object or a module holds are looked up by the link stage.
Value Builder::item_in_loop(const Value& iterated, Node target) {
    Value known = item_of(iterated);
    if (known.is.shape != Shape::other) return known;
    const bool held = !iterated.is.refers.empty() || iterated.is.name.str().starts_with("self.") ||
                      file_.is_project_name(iterated.entity) || iterated.display;
    if (!held) return known;
    Call call = make_call(target.span(), CallKind::op, symbol("?.__next__"));
    call.args.push_back(operand(iterated, target));
    return result_of(emit(std::move(call)), {});
}

void Builder::visit_for(Node node) {
    const Value iterated = eval(node.part(Part::right));
    const std::uint32_t head = new_block(), body = new_block(), rest = new_block(), after = new_block();
    go(head);
    start(head);
    weaken(node);
    edge(head, body);
    edge(head, rest);
    const std::uint32_t outer = loop_;
    loop_ = ++loops_;
    ++loop_depth_;
    frames_.push_back({.kind = Frame::Kind::loop,
                       .to = after,
                       .again = head,
                       .loop = loop_,
                       .rounds = rounds_of(iterated)});
    const std::size_t since = mark();
    start(body);
    const Node target = node.part(Part::left);
    assign_loop_target(target, iterated);
    std::vector<std::pair<Node, Value>> members;
    find_members(target, iterated.is, members);
    for (auto& [name, value] : members) assign(name, value, {});
    note_items(target, node.part(Part::right));
    run(node.part(Part::body));
    end_loop(node, since, head, rest, outer);
    if (const Node alternative = node.part(Part::alternative)) run(alternative.part(Part::body));
    go(after);
    start(after);
}

void Builder::visit_while(Node node) {
    const std::uint32_t head = new_block(), body = new_block(), rest = new_block(), after = new_block();
    go(head);
    start(head);
    weaken(node);
    const std::uint32_t outer = loop_;
    loop_ = ++loops_;
    ++loop_depth_;
    frames_.push_back({.kind = Frame::Kind::loop, .to = after, .again = head, .loop = loop_});
    branch(node.part(Part::condition), body, rest);
    const std::size_t since = mark();
    start(body);
    run(node.part(Part::body));
    end_loop(node, since, head, rest, outer);
    if (const Node alternative = node.part(Part::alternative)) run(alternative.part(Part::body));
    go(after);
    start(after);
}

void Builder::end_loop(Node node, std::size_t since, std::uint32_t head, std::uint32_t rest,
                       std::uint32_t outer) {
    const bool alive = reachable_;
    go(head);
    Delta changed = take(since);
    frames_.pop_back();
    --loop_depth_;
    loop_ = outer;
    start(rest);
    // An iteration may end anywhere. The values that the loop assigns are known afterwards only if each
    // iteration runs to its end.
    if (alive && !leaves_early(node.part(Part::body)))
        merge({{.changed = std::move(changed)}, {}});
    else
        weaken(node);
}

bool Builder::leaves_early(Node body) {
    for (Node node = body; body.contains(node); node = node.next_inside())
        if (node.kind() == Kind::break_statement || node.kind() == Kind::continue_statement) return true;
    return false;
}

bool Builder::visit_handler(Node clause, std::uint32_t dispatch, std::uint32_t after) {
    const std::uint32_t block = new_block();
    reachable_ = has_entry(dispatch);
    edge(dispatch, block);
    start(block);
    const bool outer = std::exchange(by_version_, true);
    for (const Node part : clause.children()) {
        if (part.kind() == Kind::block)
            run(part);
        else if (part.kind() == Kind::as_pattern)
            assign(part.part(Part::alias), {}, {});
    }
    by_version_ = outer;
    const bool alive = reachable_;
    go(after);
    return alive;
}

void Builder::visit_try(Node node) {
    const std::uint32_t after = new_block();
    const std::int32_t outer_handler = handler_;
    Node finally;
    std::vector<Node> handlers;
    bool catches_all = false;
    for (const Node clause : node.children()) {
        if (clause.kind() == Kind::finally_clause) finally = clause;
        if (clause.kind() != Kind::except_clause && clause.kind() != Kind::except_group_clause) continue;
        handlers.push_back(clause);
        const std::string_view what = clause.child(0).text();
        catches_all |= clause.child(0).kind() == Kind::block || what.starts_with("Exception") ||
                       what.starts_with("BaseException");
    }
    if (finally) {
        frames_.push_back({.kind = Frame::Kind::finally, .to = new_block()});
        handler_ = static_cast<std::int32_t>(frames_.back().to);
    }
    const std::int32_t finally_handler = handler_;
    const std::uint32_t dispatch = new_block();
    if (!handlers.empty()) {
        frames_.push_back({.kind = Frame::Kind::handlers, .to = dispatch});
        handler_ = static_cast<std::int32_t>(dispatch);
    }
    const std::uint32_t body = new_block();
    raise_edge();
    go(body);
    start(body);
    std::vector<Branch> branches;
    const std::size_t since = mark();
    run(node.part(Part::body));
    if (!handlers.empty()) frames_.pop_back();
    handler_ = finally_handler;
    for (const Node clause : node.children())
        if (clause.kind() == Kind::else_clause) run(clause.part(Part::body));
    const std::uint32_t joined = finally ? new_block() : after;
    bool alive = reachable_;
    go(joined);
    branches.push_back({.changed = take(since), .alive = alive});
    for (const Node handler : handlers) {
        const std::size_t from = mark();
        weaken(node.part(Part::body));
        alive = visit_handler(handler, dispatch, joined);
        branches.push_back({.changed = take(from), .alive = alive});
    }
    if (!handlers.empty() && !catches_all) {
        start(dispatch);
        unwind(Way::raise, node.span());
    }
    start(joined);
    merge(branches);
    handler_ = outer_handler;
    if (finally) visit_finally(finally, joined, after);
}

// The body is extracted once. Its end has an edge to every target that its entries were going to.
void Builder::visit_finally(Node clause, std::uint32_t joined, std::uint32_t after) {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    const bool falls = reachable_;
    edge(joined, frame.to);
    frame.ways |= 1u << static_cast<unsigned>(Way::raise);
    start(frame.to);
    for (const Node part : clause.children())
        if (part.kind() == Kind::block) run(part);
    const std::uint32_t end = block_;
    const bool ends = reachable_;
    const SourceSpan span = end_of(clause);
    for (const Way way : {Way::leave, Way::break_, Way::continue_, Way::raise}) {
        if (!(frame.ways & (1u << static_cast<unsigned>(way)))) continue;
        reachable_ = ends;
        const std::uint32_t out = new_block();
        edge(end, out, {}, true, way == Way::raise);
        start(out);
        unwind(way, span);
    }
    reachable_ = ends;
    if (falls) edge(end, after);
    start(after);
}

void Builder::visit_match(Node node) {
    for (const Node subject : node.children())
        if (subject.is_part(Part::subject)) eval(subject);
    const std::uint32_t after = new_block();
    std::vector<Branch> branches;
    const Node body = node.part(Part::body);
    for (const Node clause : body.children()) {
        if (clause.kind() != Kind::case_clause) continue;
        const std::uint32_t yes = new_block(), no = new_block();
        const Node pattern = clause.child(0);
        const Node guard = clause.part(Part::guard);
        const bool always = pattern.text() == "_" && !guard;
        edge(block_, yes);
        if (!always) edge(block_, no);
        start(yes);
        const std::size_t since = mark();
        if (guard) {
            const std::uint32_t held = new_block();
            branch(guard.child(0), held, no);
            start(held);
        }
        run(clause.part(Part::consequence));
        const bool alive = reachable_;
        go(after);
        branches.push_back({.changed = take(since), .alive = alive});
        start(no);
    }
    branches.push_back({.alive = reachable_});
    go(after);
    start(after);
    merge(branches);
}

void Builder::visit_return(Node node) {
    const Node value_node = node.child(0);
    if (value_node) {
        const Value v = eval(value_node);
        // return autocast() if amp else nullcontext(): one of them, as two statements would return.
        if (const std::vector<Choice> choices = choices_of(v); choices.size() > 1)
            for (const Choice& choice : choices) {
                Operand& one = f_.returned.emplace_back(operand(v, value_node));
                if (choice.owner == number_) one.call = choice.call;
            }
        else
            f_.returned.push_back(operand(v, value_node));
    }
    unwind(Way::leave, node.span());
}

void Builder::visit_import(Node node) {
    // Names that a module imports can be imported from it.
    const bool exports = scope_.kind == Scope::Kind::module && node.kind() == Kind::import_from_statement;
    file_.names.each_import(node, [&](Node bound, Symbol entity) {
        const std::string_view name = bound ? bound.text() : std::string_view("*");
        if (exports && (file_.is_project_name(entity) || file_.is_library_name(entity))) {
            const Symbol from = bound ? entity : file_.names.join(entity, "*");
            TypeUse& exported = f_.types.emplace_back();
            exported.span = node.span();
            exported.name = from;
            exported.alias = file_.names.join(scope_.prefix, name);
        }
        if (bound) assign_name(symbol(name), entity_value(entity, Binding::Kind::import));
    });
}

void Builder::visit_decorated(Node node) {
    std::vector<Node> decorators;
    for (const Node part : node.children())
        if (part.kind() == Kind::decorator) decorators.push_back(part);
    const Node definition = node.part(Part::definition);
    if (definition.kind() == Kind::function_definition)
        visit_function(definition, std::move(decorators));
    else if (definition.kind() == Kind::class_definition)
        visit_class(definition, decorators);
}

void Builder::visit_function(Node node, std::vector<Node> decorators) {
    const Node name = node.part(Part::name);
    if (!name) return;
    for (const Node parameter : node.part(Part::parameters).children())
        if (parameter.has_call()) eval(parameter.part(Part::value));
    Symbol usr = file_.names.join(scope_.prefix, name.text());
    assign_name(file_.names.of(name), entity_value(usr, Binding::Kind::function));
    for (const Node decorator : decorators) {
        const std::string_view leaf = last_part(decorator.child(0).text());
        if (leaf == "overload") return;  // a declaration
        if (leaf == "setter" || leaf == "deleter") usr = file_.names.join(usr, leaf);
    }
    for (const Node decorator : decorators)
        if (last_part(decorator.child(0).text()).ends_with("contextmanager"))
            file_.context_generators.insert(usr);
    ClassInfo* const owner = scope_.kind == Scope::Kind::class_ ? scope_.owner : nullptr;
    scope_.has_inner = true;
    file_.pending.push_back({.node = node,
                             .decorators = std::move(decorators),
                             .around = &scope_,
                             .owner = owner,
                             .usr = usr,
                             .by_version = by_version_});
}

// The name of a decorator, with its arguments.
Symbol Builder::decorator_text(Node decorator) {
    const Node expression = decorator.child(0);
    const bool called = expression.kind() == Kind::call;
    const Node function = called ? expression.part(Part::function) : expression;
    if (function.kind() != Kind::identifier && function.kind() != Kind::attribute)
        return file_.text_of(expression);
    const Value meant = eval(function);
    std::string text(meant.entity.empty() ? function.text() : meant.entity.str());
    if (called) text += file_.text_of(expression.part(Part::arguments)).str();
    std::replace(text.begin(), text.end(), '"', '\'');
    return Symbol(text);
}

void Builder::visit_class(Node node, const std::vector<Node>& decorators) {
    const Node name = node.part(Part::name);
    if (!name) return;
    std::vector<Symbol> bases;
    const std::size_t taken = file_.unit.taken.size();
    for (const Node base : node.part(Part::superclasses).children()) {
        if (base.is_token() || base.kind() == Kind::keyword_argument) continue;
        const Value v = eval(base);
        if (!v.entity.empty())
            bases.push_back(v.entity);
        else
            bases.push_back(file_.text_of(base));
    }
    file_.unit.taken.resize(taken);  // a class that only others derive from is not used
    const Symbol qualified = file_.names.join(scope_.prefix, name.text());
    assign_name(file_.names.of(name), entity_value(qualified, Binding::Kind::class_));
    ClassInfo& type = file_.classes.add(file_, qualified, node, std::move(bases));
    std::vector<Symbol> annotations;
    for (const Node decorator : decorators) annotations.push_back(decorator_text(decorator));
    extract_class_body(file_, type, scope_, node, std::move(annotations));
}

}  // namespace mp::lint::python
