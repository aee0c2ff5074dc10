#include <algorithm>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/library.hpp"

namespace mp::lint::python {
namespace {

// The statements of a body that are the only store to an attribute; no node for attributes that others store to, too.
std::unordered_map<std::string_view, Node> stores_in(Node body) {
    std::unordered_map<std::string_view, Node> stores;
    for (Node node = body; node && node.index() < body.end_index(); node = node.next_inside()) {
        const Node target = node.kind() == Kind::delete_statement ? node : stored_by(node);
        if (!target) continue;
        const bool is_plain = node.kind() == Kind::assignment && node.parent().parent() == body;
        for (Node part = target; part && part.index() < target.end_index(); part = part.next_inside()) {
            if (part.kind() != Kind::attribute) continue;
            const auto [store, is_first] = stores.try_emplace(part.text(), node);
            if (!is_first || !is_plain || part != target) store->second = Node{};
        }
    }
    return stores;
}

}  // namespace

std::uint32_t Builder::new_block() {
    f_.flow.emplace_back();
    entered_blocks_.push_back(false);
    raised_from_.push_back(0);
    return static_cast<std::uint32_t>(f_.flow.size() - 1);
}

void Builder::edge(std::uint32_t from, std::uint32_t to, Symbol condition, bool when, bool raises) {
    if (!reachable_) return;
    f_.flow[from].to.push_back({.to = to, .condition = condition, .when = when, .raises = raises});
    entered_blocks_[to] = true;
}

void Builder::go(std::uint32_t to) {
    edge(block_, to);
    reachable_ = false;
}

void Builder::start(std::uint32_t block, bool reachable) {
    block_ = block;
    reachable_ = reachable && entered_blocks_[block];
}

void Builder::leave(const SourceSpan& span) {
    if (!reachable_) return;
    f_.flow[block_].leaves = true;
    f_.flow[block_].span = span;
    reachable_ = false;
}

// Any call may raise, so inside of `try` each call has an edge to the handlers.
void Builder::raise_edge() {
    if (handler_ == kNone || !reachable_) return;
    const auto to = static_cast<std::uint32_t>(handler_);
    if (raised_from_[block_] == to + 1) return;
    raised_from_[block_] = to + 1;
    edge(block_, to, {}, true, true);
}

void Builder::unwind(Way way, const SourceSpan& span) {
    if (!reachable_) return;
    const std::int32_t handler = handler_;
    handler_ = kNone;
    for (std::size_t i = frames_.size(); i-- > 0 && reachable_;) {
        Frame& frame = frames_[i];
        switch (frame.kind) {
            case Frame::Kind::loop:
                if (way == Way::break_) go(frame.to);
                if (way == Way::continue_) go(frame.again);
                break;
            case Frame::Kind::with:
                emit_exits(frame, span);
                break;
            case Frame::Kind::handlers:
                if (way != Way::raise) break;
                edge(block_, frame.to, {}, true, true);
                reachable_ = false;
                break;
            case Frame::Kind::finally:
                frame.ways |= 1u << static_cast<unsigned>(way);
                edge(block_, frame.to, {}, true, way == Way::raise);
                reachable_ = false;
                break;
        }
    }
    leave(span);
    handler_ = handler;
}

void Builder::branch(Node condition, std::uint32_t yes, std::uint32_t no) {
    switch (condition.kind()) {
        case Kind::parenthesized_expression:
            if (const Node inner = condition.child(0)) return branch(inner, yes, no);
            break;
        case Kind::not_operator:
            return branch(condition.part(Part::argument), no, yes);
        case Kind::boolean_operator: {
            const bool is_and = condition.operator_token().text() == "and";
            const std::uint32_t rest = new_block();
            branch(condition.part(Part::left), is_and ? rest : yes, is_and ? no : rest);
            start(rest);
            return branch(condition.part(Part::right), yes, no);
        }
        case Kind::true_:
            return go(yes);
        case Kind::false_:
        case Kind::none:
            return go(no);
        case Kind::integer:  // if 0: code that was put aside
            return go(condition.text() == "0" ? no : yes);
        default:
            break;
    }
    const Value value = eval(condition);
    if (value.entity.str() == "typing.TYPE_CHECKING") return go(no);
    bool when = true;
    const Symbol text = stable_text(condition, when);
    edge(block_, yes, text, when);
    edge(block_, no, text, !when);
    reachable_ = false;
}

bool asks_for_version(std::string_view condition) {
    constexpr std::string_view kWords[] = {"hasattr(", "version", "VERSION", "TORCH_"};
    return std::ranges::any_of(kWords,
                               [&](std::string_view word) { return condition.find(word) != condition.npos; });
}

Symbol Builder::condition_text(Node condition, bool& when) {
    while (condition.kind() == Kind::not_operator || condition.kind() == Kind::parenthesized_expression) {
        if (condition.kind() == Kind::not_operator) when = !when;
        const Node inner =
            condition.kind() == Kind::not_operator ? condition.part(Part::argument) : condition.child(0);
        if (!inner) break;
        condition = inner;
    }
    if (condition.kind() == Kind::comparison_operator) {
        const Node op = condition.operator_token(), left = condition.child(0), right = condition.child(1);
        const std::string_view token = op.text();
        if (!condition.child(2) && (token == "is not" || token == "!=" || token == "not in")) {
            when = !when;
            const std::string_view plain = token == "is not" ? " is " : token == "!=" ? " == " : " in ";
            std::string text(file_.text_of(left).str());
            return Symbol(text.append(plain).append(file_.text_of(right).str()));
        }
    }
    return file_.text_of(condition);
}

Symbol Builder::stable_text(Node condition, bool& when) {
    return is_stable(condition) ? condition_text(condition, when) : Symbol{};
}

bool Builder::is_stable(Node condition) {
    if (!inner_.empty()) return false;
    for (Node node = condition; node && (node == condition || condition.contains(node));) {
        bool inside = true;
        switch (node.kind()) {
            case Kind::identifier:
                if (!is_stable_name(file_.names.of(node))) return false;
                break;
            case Kind::attribute: {
                // The attribute's own name is not a variable. The dotted name must have its value by now.
                const Symbol dotted = file_.names.dotted(node);
                if (dotted_.find(dotted) != FlatMap::kAbsent && !is_set_once_above(node)) return false;
                const Node object = node.part(Part::object);
                if (object.kind() != Kind::identifier && object.kind() != Kind::attribute) return false;
                Node root = object;
                while (root.kind() == Kind::attribute) root = root.part(Part::object);
                if (root.kind() != Kind::identifier || !is_stable_name(file_.names.of(root))) return false;
                if (object.kind() == Kind::identifier && !is_stable_attribute(object, node)) return false;
                inside = false;
                break;
            }
            case Kind::subscript:
                if (!is_stable_item(node)) return false;
                inside = false;
                break;
            case Kind::call:
                if (!is_stable_call(node)) return false;
                break;
            case Kind::argument_list:
            case Kind::parenthesized_expression:
            case Kind::not_operator:
            case Kind::boolean_operator:
            case Kind::comparison_operator:
            case Kind::integer:
            case Kind::float_:
            case Kind::true_:
            case Kind::false_:
            case Kind::none:
            case Kind::tuple:
            case Kind::list:
                break;
            case Kind::string:
                inside = false;
                break;
            default:
                if (!node.is_token()) return false;
        }
        node = inside ? node.next_inside() : node.next_outside();
    }
    return true;
}

// One parser has filled the object, from a file in one branch and from the command line in the other.
bool Builder::holds_options(Symbol name) const {
    const std::uint32_t slot = scope_.index.find(name);
    return slot != FlatMap::kAbsent && env_[slot].set && parsed_by(env_[slot].value.is) != nullptr;
}

bool Builder::is_stable_name(Symbol name) {
    for (Scope* scope = &scope_; scope; scope = scope->parent) {
        if (scope->kind == Scope::Kind::class_ && scope != &scope_) continue;
        const Binding* binding = scope->find(name);
        if (binding && !binding->elsewhere) {
            // `try: import apex; APEX = True`, `except ImportError: APEX = False`: done when functions run.
            const bool is_done = scope != &scope_ && scope->kind == Scope::Kind::module && !binding->shared;
            return is_done || binding->is_fixed() || binding->kind == Binding::Kind::import ||
                   (scope == &scope_ && holds_options(name));
        }
        if (binding) return false;
    }
    return is_builtin(name.str());
}

// `self.x` changes while a method runs if this method assigns it, except once above. A call of another method that
// assigns it is not looked for: that one sets up the object, and runs before or after.
bool Builder::is_stable_attribute(Node object, Node attribute) {
    if (!scope_.owner || !load(object).is_self) return true;
    const AttributeInfo* known = scope_.owner->attribute(file_.names.of(attribute.part(Part::attribute)));
    const auto writes_here = [&](Node method) { return method.contains(attribute); };
    return !known || std::ranges::none_of(known->writers, writes_here) || is_set_once_above(attribute);
}

// `self.amp = use_amp` is a statement of the body itself, stands before this use, and nothing else in the body stores
// to the name.
bool Builder::is_set_once_above(Node attribute) {
    if (!statement_node_) return false;
    if (!stores_) stores_ = stores_in(statement_node_.parent());
    const auto store = stores_->find(attribute.text());
    return store != stores_->end() && store->second && store->second.index() < attribute.index() &&
           !store->second.contains(attribute);
}

// `config["amp"]`, which nothing here stores. An index in a list is none: lists are filled and emptied.
bool Builder::is_stable_item(Node item) {
    const Node object = item.part(Part::value);
    const auto stores = [this](Node where) {
        return std::ranges::find(scope_.stored, Symbol(where.text())) != scope_.stored.end();
    };
    const bool is_setting = item.part(Part::subscript).kind() == Kind::string && has_literal_index(item);
    return is_setting && !stores(item) && !stores(object) && is_stable(object);
}

// `isinstance(x, C)` and its like, `scaler.is_enabled()`, and `config.get("amp")`: they have the same value as long as
// their operands.
bool Builder::is_stable_call(Node call) {
    const std::string_view name = call.part(Part::function).text();
    const Node first = call.part(Part::arguments).child(0);
    return name == "isinstance" || name == "hasattr" || name == "callable" ||
           name.ends_with("cuda.is_available") || name.ends_with(".is_enabled") ||
           (name.ends_with(".get") && first && first.kind() == Kind::string);
}

}  // namespace mp::lint::python
