// Loops over the tensors that a module holds, and casts whose result nothing reads.

#include <algorithm>
#include <array>
#include <charconv>

#include "analyzer/python/builder.hpp"
#include "analyzer/python/builtins.hpp"
#include "analyzer/python/library/dotted.hpp"

namespace mp::lint::python {
namespace {

constexpr int kDeepest = 4;  // of list(tqdm(x)), and of (p.detach().clone() for p in x)

const Call* call_at(const Function& f, std::int32_t index) {
    return index == kNone ? nullptr : &f.calls[static_cast<std::size_t>(index)];
}

// list(x), tqdm(x): the items are those of their first argument. A display is a constructor.
const Call* unwrapped(const Function& f, const Call* call) {
    constexpr std::array<std::string_view, 6> kWrappers{"list", "tuple", "reversed", "iter", "tqdm", "track"};
    for (int depth = 0; call && depth < kDeepest; ++depth) {
        const bool wraps = call->kind == CallKind::function && !call->args.empty() &&
                           is_one_of(last_part(call->name.str()), kWrappers);
        if (!wraps) break;
        call = call_at(f, call->args[0].call);
    }
    return call;
}

// [p.detach().clone() for p in net.parameters()], and with "dict" {n: p for n, p in net.named_parameters()}
bool lists_members(const Function& f, const Call& call, std::string_view display = "list") {
    if (call.kind != CallKind::constructor || call.name.str() != display || call.args.size() != 1)
        return false;
    const Call* item = call_at(f, call.args[0].call);
    for (int depth = 0; item && depth < kDeepest; ++depth) {
        if (item->name.str() == "?.__next__") return true;
        item = item->args.empty() ? nullptr : call_at(f, item->args[0].call);
    }
    return false;
}

// values() and items() of a state_dict, or of a dictionary that the function fills with tensors of a module.
bool is_of_members(const Function& f, const Call& items) {
    const Call* held = items.args.empty() ? nullptr : call_at(f, items.args[0].call);
    return held && (last_part(held->name.str()) == "state_dict" || lists_members(f, *held, "dict"));
}

// Whether each item is a tensor or a part of a module, or a name and such a tensor.
bool yields_members(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 4> kMethods{"parameters", "buffers", "modules", "children"};
    const std::string_view method = last_part(call.name.str());
    if (call.kind != CallKind::method) return lists_members(f, call);
    return is_one_of(method, kMethods) || (method == "values" && is_of_members(f, call));
}

bool yields_named_members(const Function& f, const Call& call) {
    constexpr std::array<std::string_view, 4> kMethods{"named_parameters", "named_buffers", "named_modules",
                                                       "named_children"};
    if (call.kind != CallKind::method) return false;
    const std::string_view method = last_part(call.name.str());
    return is_one_of(method, kMethods) || (method == "items" && is_of_members(f, call));
}

std::vector<Node> parts_of(Node target) {
    std::vector<Node> parts;
    for (const Node part : target.children())
        if (!part.is_token()) parts.push_back(part);
    return parts;
}

bool binds(Node target, std::string_view name) {
    bool found = false;
    each_target(target, [&](Node bound) { found |= bound.text() == name; });
    return found;
}

// Whether the name is bound anew in this function, loop or comprehension, so that it reads no outer one.
bool rebinds(Node node, std::string_view name) {
    if (node.kind() == Kind::for_statement) return binds(node.part(Part::left), name);
    for (const Node child : node.children()) {
        if (child.kind() == Kind::for_in_clause && binds(child.part(Part::left), name)) return true;
        if (!child.is_part(Part::parameters)) continue;
        for (const Node parameter : child.children()) {
            const Node named = parameter.kind() == Kind::identifier ? parameter : parameter.child(0);
            if (named.text() == name) return true;
        }
    }
    return false;
}

bool is_variable(Node node, std::string_view name) {
    return node.kind() == Kind::identifier && node.text() == name && !node.is_part(Part::attribute) &&
           !node.is_part(Part::name);
}

// Whether the nodes from `at` up to the index `end` read a variable, leaving `skipped` out.
bool reads(Node at, std::uint32_t end, std::string_view name, Node skipped = {}) {
    while (at && at.index() < end) {
        if (is_variable(at, name)) return true;
        at = at == skipped || rebinds(at, name) ? at.next_outside() : at.next_inside();
    }
    return false;
}

// The same for what can run after a statement in the body of its loop: not the other branches of an `if`.
bool reads_after(Node statement, Node loop, std::string_view name) {
    for (Node at = statement; at != loop; at = at.parent()) {
        const Node around = at.parent();
        for (const Node next : around.children()) {
            const bool other_branch = around.kind() == Kind::if_statement &&
                                      (next.kind() == Kind::elif_clause || next.kind() == Kind::else_clause);
            if (next.index() > at.index() && !other_branch && reads(next, next.end_index(), name))
                return true;
        }
    }
    return false;
}

bool is_cast(std::string_view method) {
    constexpr std::array<std::string_view, 6> kCasts{"to", "type", "half", "float", "bfloat16", "double"};
    return is_one_of(method, kCasts);
}

bool is_loop(Kind kind) { return kind == Kind::for_statement || kind == Kind::while_statement; }

bool is_scope(Kind kind) {
    return kind == Kind::function_definition || kind == Kind::class_definition || kind == Kind::lambda ||
           kind == Kind::module;
}

// Whether the assignment rebinds the variable of the loop around it, and nothing reads the variable before
// the loop binds it again, nor after the loop.
bool rebinds_unread(Node assignment, std::string_view name) {
    Node loop = assignment.parent();
    while (loop && !is_loop(loop.kind()) && !is_scope(loop.kind())) loop = loop.parent();
    if (loop.kind() != Kind::for_statement || !binds(loop.part(Part::left), name)) return false;
    if (reads_after(assignment, loop, name)) return false;
    // An outer loop runs all of its body again.
    Node first = loop.next_outside();
    Node scope = loop.parent();
    for (; scope && !is_scope(scope.kind()); scope = scope.parent())
        if (is_loop(scope.kind())) first = scope.next_inside();
    return !reads(first, scope.end_index(), name, loop);
}

}  // namespace

// The targets of a loop that take the tensors of a module, with their values: `e` and `p` of `for e, p in
// zip(ema.parameters(), net.parameters())`.
void Builder::find_members(Node target, const Operand& iterated,
                           std::vector<std::pair<Node, Value>>& members) {
    const Call* call = unwrapped(f_, call_at(f_, iterated.call));
    if (!call || call->args.empty()) return;
    if (target.kind() == Kind::identifier) {
        if (yields_members(f_, *call)) members.emplace_back(target, next_of(*call, iterated, target));
        return;
    }
    const std::vector<Node> parts = parts_of(target);
    if (parts.size() == 2 && yields_named_members(f_, *call)) {
        members.emplace_back(parts[1], next_of(*call, iterated, parts[1]));
    } else if (call->name.str() == "enumerate" && parts.size() == 2) {
        const Operand inner = call->args[0];
        find_members(parts[1], inner, members);
    } else if (call->name.str() == "zip") {
        const std::vector<Operand> zipped = call->args;
        for (std::size_t i = 0; i < std::min(parts.size(), zipped.size()); ++i)
            if (zipped[i].keyword.empty()) find_members(parts[i], zipped[i], members);
    }
}

// `?.__next__`: one item of what the call returned.
Value Builder::next_of(const Call& iterated, const Operand& held, Node target) {
    Call read = make_call(target.span(), CallKind::op, symbol("?.__next__"));
    Operand source = held;
    source.call = static_cast<std::int32_t>(&iterated - f_.calls.data());
    source.shape = iterated.result.shape;
    source.dtype = iterated.result.dtype;
    source.keyword = {};
    Value whole;
    whole.is = source;
    Value item = item_of(whole);
    read.result = item.is;
    read.args = {std::move(source)};
    item.is.call = emit(std::move(read));
    return item;
}

// `p = p.float()` on the variable of a loop, or `p.data.float()` alone.
void Builder::note_unused(const Value& value, Node statement, Node target) {
    if (value.is.call == kNone) return;
    Call& call = f_.calls[static_cast<std::size_t>(value.is.call)];
    if (call.kind != CallKind::method || !is_cast(last_part(call.name.str()))) return;
    if (!target)
        call.unused = true;
    else if (target.kind() == Kind::identifier && loop_depth_ > 0)
        call.unused = rebinds_unread(statement, target.text());
}

// The answers of questions that nothing but a message depends on: `if is_bf16_supported(): print(...)`. Of a statement
// that is an expression, what a notebook shows: the question, or an item of a tuple.
void Builder::note_told(std::size_t first_call, Node shown) {
    const bool is_tuple = shown.kind() == Kind::tuple || shown.kind() == Kind::expression_list;
    const auto is_shown = [&](const SourceSpan& span) {
        if (!shown || shown.span() == span) return true;
        if (is_tuple)
            for (const Node item : shown.children())
                if (item.span() == span) return true;
        return false;
    };
    for (std::size_t i = first_call; i < f_.calls.size(); ++i) {
        Call& call = f_.calls[i];
        if (call.args.empty() && call.kind == CallKind::function && is_shown(call.span)) call.unused = true;
    }
}

// How often `for i in range(4)` runs; 0: not known.
std::uint64_t Builder::rounds_of(const Value& iterated) const {
    if (iterated.is.call == kNone) return 0;
    const Call& call = f_.calls[static_cast<std::size_t>(iterated.is.call)];
    if (call.name.str() != "range" || call.args.size() != 1 || call.args[0].assumed) return 0;
    const std::string_view digits = call.args[0].constant.str();
    std::uint64_t rounds = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rounds);
    return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() ? rounds : 0;
}

// How often a statement runs for one run of the loop with this id; 0: not known.
std::uint64_t Builder::rounds_since(std::uint32_t loop) const {
    std::uint64_t rounds = 1;
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
        if (frame->kind != Frame::Kind::loop) continue;
        if (frame->loop == loop) break;
        if (__builtin_mul_overflow(rounds, frame->rounds, &rounds)) return 0;
    }
    return rounds;
}

}  // namespace mp::lint::python
