#include "analyzer/analyses/module_operands.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/analyses/trials.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

// Calls that are followed from one operand.
constexpr int kFarthest = 8;
// Displays, loops and functions between parameters() and an optimizer.
constexpr int kLongest = 16;

constexpr std::string_view kNext = "?.__next__";

// The call that gave `p` to the function, of `p.data`, `p.grad`, `p.detach().clone()` and `p`: all have its dtype.
const Call* member_of(const Function& f, const Operand& tensor) {
    const Operand* const at = &same_tensor(f, tensor);
    if (const Call* call = call_of(f, *at); call && call->name.str() == kNext) return call;
    std::string_view name = at->name.str();
    if (!name.ends_with(".data") && !name.ends_with(".grad")) return nullptr;
    name.remove_suffix(std::string_view(".data").size());
    // The last loop before it that binds the variable.
    const Call* found = nullptr;
    for (const Call& call : f.calls)
        if (call.name.str() == kNext && call.result.name.str() == name &&
            (!at->span.known() || call.span.line <= at->span.line))
            found = &call;
    return found;
}

constexpr std::array<std::string_view, 2> kDictionaries{"dict", "OrderedDict"};
constexpr std::array<std::string_view, 3> kNamed{"named_parameters", "named_buffers", "state_dict"};

// Whether the word stands in the text.
bool has_word(std::string_view text, std::string_view word) {
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_part_of_name(text[at - 1])) &&
            (end == text.size() || !is_part_of_name(text[end])))
            return true;
    }
    return false;
}

// What append() and extend() put into the display: decay.append(p), (decay if p.ndim > 1 else rest).append(p)
template <typename Each>
void for_each_added(const Function& f, const Call& display, const Each& each) {
    constexpr std::array<std::string_view, 2> kAdds{"append", "extend"};
    if (display.kind != CallKind::constructor || display.name.str() != "list") return;
    const std::int32_t at = index_of(f, display);
    const std::string_view name = display.result.name.str();
    for (const Call& call : f.calls) {
        if (call.args.size() != 2 || !any_of(leaf(call.name.str()), kAdds)) continue;
        const Operand& list = call.args[0];
        const bool chosen = list.name.empty() && !name.empty() && has_word(list.text.str(), name);
        if (list.call == at || chosen) each(call.args[1]);
    }
}

void find_modules(const RuleContext& context, const Function& f, const Operand& value, int left,
                  std::vector<ListedModule>& found) {
    constexpr std::size_t kMost = 16;
    constexpr std::array<std::string_view, 11> kHolders{"list",  "tuple",   "set",     "dict",
                                                        "chain", "filter",  "sorted",  "values",
                                                        "items", "__add__", "__iadd__"};
    const Call* call = call_of(f, value);
    if (left <= 0 || found.size() >= kMost) return;
    if (const auto list = call ? std::nullopt : list_of(f, value)) {
        find_modules(context, f, *list, left - 1, found);
        return;
    }
    if (!call && value.param != kNone) {
        for (const Call* passed : callers_by_weight(context, f)) {
            const Function* caller = context.program.owner(*passed);
            const Operand* argument = caller ? argument_for(*passed, f, value.param) : nullptr;
            if (argument) find_modules(context, *caller, *argument, std::min(left, kFarthest) / 2, found);
        }
        return;
    }
    if (!call) return;
    const std::string_view name = leaf(call->name.str());
    const bool lists = name == "parameters" || name == "named_parameters";
    if (lists && call->kind == CallKind::method && !call->args.empty() &&
        !context.program.definition(call->callee)) {
        found.push_back({&f, &call->args.front(), call});
        return;
    }
    if (call->name.str() == kNext || any_of(name, kHolders)) {
        // A dictionary is a group of an optimizer, or a comprehension over named parameters.
        const bool is_group = name == "dict" && !(call->args.size() == 1 && call->args[0].keyword.empty());
        for (const Operand& part : call->args)
            if (!is_group || part.keyword.str() == "params") find_modules(context, f, part, left - 1, found);
        for_each_added(f, *call,
                       [&](const Operand& part) { find_modules(context, f, part, left - 1, found); });
        return;
    }
    const Function* callee = context.program.definition(call->callee);
    if (!callee || call->kind == CallKind::constructor) return;
    for (const Operand& returned : callee->returned)
        find_modules(context, *callee, returned, left - 1, found);
}

}  // namespace

const Operand& same_tensor(const Function& f, const Operand& tensor) {
    constexpr std::array<std::string_view, 6> kSame{"detach", "data", "contiguous", "cuda", "cpu", "clone"};
    const Operand* at = &tensor;
    for (int step = 0; step < kFarthest; ++step) {
        const Call* call = call_of(f, *at);
        if (!call || call->args.empty() || !any_of(leaf(call->name.str()), kSame)) break;
        at = &call->args.front();
    }
    return *at;
}

bool is_same(const Operand& a, const Operand& b) {
    return (!a.name.empty() && a.name == b.name) || (a.param != kNone && a.param == b.param);
}

const Operand& receiver_of(const Function& f, const Operand& value) {
    const Operand* object = &value;
    for (int step = 0; step < kFarthest && object->name.empty(); ++step) {
        const Call* call = call_of(f, *object);
        if (!call || call->kind != CallKind::method || call->args.empty() ||
            !passes_itself_on(leaf(call->name.str())))
            break;
        object = &call->args.front();
    }
    return *object;
}

Operand parameter(const Function& f, std::size_t param) {
    Operand o;
    o.param = static_cast<std::int32_t>(param);
    o.name = f.params[param].name;
    o.shape = f.params[param].shape;
    return o;
}

Operand attribute(Symbol name) {
    Operand o;
    o.name = name;
    o.shape = Shape::other;
    return o;
}

bool is_display_of_modules(std::string_view name) {
    constexpr std::array<std::string_view, 5> kDisplays{"list", "tuple", "dict", "torch.nn.ModuleList",
                                                        "torch.nn.ModuleDict"};
    return any_of(name, kDisplays);
}

std::optional<Operand> list_of(const Function& f, const Operand& value) {
    const Call* call = call_of(f, value);
    if (call && call->name.str() == kNext && !call->args.empty()) return call->args.front();
    if (call && indexes(*call)) {
        const Call* held = call_of(f, call->args.front());
        if (held && is_display_of_modules(held->name.str())) return call->args.front();
    }
    const auto alias = std::ranges::find_if(
        f.aliases, [&](const Alias& a) { return a.item && !a.of.empty() && a.name == value.name; });
    if (call || value.param != kNone || alias == f.aliases.end()) return std::nullopt;
    Operand list = attribute(alias->of);
    for (std::size_t p = 0; p < f.params.size(); ++p)
        if (f.params[p].name == alias->of) list = parameter(f, p);
    for (std::size_t i = 0; i < f.calls.size(); ++i)
        if (f.calls[i].result.name == alias->of) list.call = static_cast<std::int32_t>(i);
    return list;
}

bool is_item_of(const Function& f, const Operand& value, const Operand& list) {
    const auto found = list_of(f, value);
    return found && is_same(*found, list);
}

bool is_wrapped(const Operand& object, const Operand& wrapper) {
    const std::string_view name = wrapper.name.str();
    return !name.empty() && object.name.str().starts_with(name) &&
           object.name.str().substr(name.size()) == ".module";
}

bool lists_parts(std::string_view method) {
    constexpr std::array<std::string_view, 4> kParts{"modules", "children", "named_modules",
                                                     "named_children"};
    return any_of(method, kParts);
}

bool is_part_in_loop(const Function& f, const Operand& part, const Operand& module) {
    const Call* next = call_of(f, part);
    if (!next || next->name.str() != kNext || next->args.empty()) return false;
    const Call* listing = call_of(f, next->args.front());
    return listing && lists_parts(leaf(listing->name.str())) && !listing->args.empty() &&
           is_same(listing->args.front(), module);
}

const Call* listing_of(const Function& f, const Operand& tensor) {
    const Call* member = member_of(f, tensor);
    if (member && !member->args.empty()) return call_of(f, member->args.front());
    // averages[name], with averages = OrderedDict(ema.named_parameters())
    const Call* read = call_of(f, tensor);
    if (!read || !indexes(*read)) return nullptr;
    const Call* held = call_of(f, read->args.front());
    if (held && any_of(leaf(held->name.str()), kDictionaries) && !held->args.empty())
        held = call_of(f, held->args.front());
    return held && any_of(leaf(held->name.str()), kNamed) ? held : nullptr;
}

std::vector<ListedModule> modules_in(const RuleContext& context, const Function& f,
                                     const Operand& parameters) {
    std::vector<ListedModule> found;
    find_modules(context, f, parameters, kLongest, found);
    return found;
}

}  // namespace mp::lint
