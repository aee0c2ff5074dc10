#include "analyzer/region/object_classes.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "analyzer/python/library/library.hpp"
#include "analyzer/python/library/library_tables.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

// Maximum depth, so that hostile input cannot exhaust the stack.
constexpr int kDeepest = 64;

// In place of an index: each item, which the target of a `for` is in turn.
constexpr std::size_t kEach = std::numeric_limits<std::int32_t>::max();

// What `of` gives for every item, if it is the same for all.
template <typename Items, typename Of>
Symbol agreed(const Items& items, Of of) {
    Symbol common;
    for (const auto& item : items) {
        const Symbol found = of(item);
        if (found.empty() || (!common.empty() && found != common)) return {};
        common = found;
    }
    return common;
}

bool is_list(const Call& made) {
    const bool display = made.name.str() == "list" || made.name.str() == "tuple";
    return display && made.kind == CallKind::constructor &&
           std::ranges::all_of(made.args, [](const Operand& part) { return part.keyword.empty(); });
}

}  // namespace

bool returns_first_argument(std::string_view name) {
    static const python::Lists& passes = python::lists_in("passes");
    const auto found = passes.find(name);
    return found != passes.end() && found->second.front().ends_with("@0");
}

bool passes_itself_on(std::string_view method) {
    constexpr std::array<std::string_view, 14> kMethods{
        "cuda", "cpu",  "to",    "half",  "bfloat16",       "float", "double",
        "type", "eval", "train", "apply", "requires_grad_", "xpu",   "to_empty"};
    return std::ranges::find(kMethods, method) != kMethods.end();
}

bool is_attribute_of_self(const Operand& o) {
    constexpr std::string_view kSelf = "self.";
    const std::string_view name = o.name.str();
    return name.starts_with(kSelf) && name.find('.', kSelf.size()) == std::string_view::npos;
}

// A key that is being resolved counts as unknown, which ends recursion.
template <class Find>
Symbol ObjectClasses::once(FactKey key, Find find) {
    const auto [kept, is_new] = known_.try_emplace(key);
    if (!is_new || depth_ >= kDeepest) return kept;
    ++depth_;
    const Symbol found = find();
    --depth_;
    return kept = found;
}

Symbol ObjectClasses::of(const Function& f, const Operand& o) {
    if (o.call >= 0 && static_cast<std::size_t>(o.call) < f.calls.size()) {
        const Call& call = f.calls[static_cast<std::size_t>(o.call)];
        return once({&call, kNone}, [&] { return of_call(f, call); });
    }
    if (o.param >= 0 && static_cast<std::size_t>(o.param) < f.params.size())
        return once({&f, o.param}, [&] { return of_parameter(f, o.param); });
    return is_attribute_of_self(o) ? of_attribute(f, o.name) : Symbol{};
}

Symbol ObjectClasses::of_attribute(const Function& f, Symbol name) {
    if (f.parent_class.empty()) return {};
    const auto [init, value] = names_.classes().kept(f.parent_class, name);
    return value ? once({value, kNone}, [&] { return of(*init, *value); }) : Symbol{};
}

Symbol ObjectClasses::of_call(const Function& f, const Call& call) {
    const std::string_view name = call.name.str();
    if (const std::int32_t same = python::passes_on(call); same != kNone)
        return of(f, call.args[static_cast<std::size_t>(same)]);
    // The name of a display has no dot. A context manager is entered, not called.
    const bool of_library = name.find('.') != std::string_view::npos && !name.starts_with('?') &&
                            call.result.shape != Shape::tensor && !leaf(name).ends_with("Parameter");
    if (call.kind == CallKind::constructor && (names_.classes().knows(call.name) || of_library))
        return call.name;
    if (const Item item = item_of(call); item.held) return of_item(f, item);
    if (call.kind == CallKind::op && call.args.size() == 1 && leaf(name) == "__next__")
        return of_item(f, {&call.args[0], kEach});
    if (const Function* callee = names_.function(call.callee))
        return once({callee, kNone}, [&] { return of_returned(*callee); });
    const bool is_method = call.kind == CallKind::method && !call.args.empty();
    return is_method && passes_itself_on(leaf(name)) ? of(f, call.args[0]) : Symbol{};
}

// The class of the item at this index, if every display that the held value can be agrees; or of each item, if all
// have one.
Symbol ObjectClasses::of_item(const Function& f, const Item& item) {
    if (const Call* made = call_of(f, *item.held)) {
        if (item.at == kEach && !is_list(*made)) return {};
        if (item.at == kEach) return agreed(made->args, [&](const Operand& part) { return of(f, part); });
        const Operand* part = item_of_display(*made, item.at);
        return part ? of(f, *part) : Symbol{};
    }
    if (is_attribute_of_self(*item.held) && !f.parent_class.empty()) {
        const auto [init, value] = names_.classes().kept(f.parent_class, item.held->name);
        const auto look = [&] { return of_item(*init, {value, item.at}); };
        return value ? once({value, static_cast<std::int32_t>(item.at)}, look) : Symbol{};
    }
    if (item.held->param < 0) return {};
    return agreed(callers_.get(f.usr), [&](const Caller& c) {
        const Operand* argument = argument_for(*c.call, f, item.held->param);
        // `once` ends the recursion of functions that pass the list to themselves.
        const auto look = [&] { return of_item(*c.function, {argument, item.at}); };
        return argument ? once({argument, static_cast<std::int32_t>(item.at)}, look) : Symbol{};
    });
}

Symbol ObjectClasses::of_parameter(const Function& f, std::int32_t param) {
    // `self` is an object of the class or of a derived class.
    if (param == 0 && !f.parent_class.empty() && f.params[0].name.str() == "self") return {};
    return agreed(callers_.get(f.usr), [&](const Caller& c) {
        const Operand* argument = argument_for(*c.call, f, param);
        return argument ? of(*c.function, *argument) : Symbol{};
    });
}

Symbol ObjectClasses::of_returned(const Function& f) {
    return agreed(f.returned, [&](const Operand& o) { return of(f, o); });
}

}  // namespace mp::lint
