// What a call of a value can run: through lists, tables, containers of modules and registries.

#include <algorithm>
#include <string>

#include "analyzer/python/library/library.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/python_regions.hpp"
#include "analyzer/region/tables.hpp"
#include "analyzer/region/values.hpp"

namespace mp::lint {
namespace {

constexpr std::size_t kMostCallees = 16;

bool holds_modules(std::string_view name) {
    return name == "torch.nn.ModuleList" || name == "torch.nn.ModuleDict" || name == "torch.nn.Sequential";
}

// Whether the result has items of its own: [Block()] * n, OrderedDict([...]), a list. A module that a constructor made
// has not.
bool holds_items(const Call& call) {
    const std::string_view name = call.name.str();
    return is_display(call) || leaf(name) == "__mul__" || leaf(name) == "OrderedDict";
}

}  // namespace

std::vector<Values::Candidate> Values::callees(const Function& f, const Operand& o) {
    std::vector<Candidate> found;
    if (!add_callees(f, o, found, 0)) return {};
    std::vector<Candidate> distinct;
    for (const Candidate& c : found)
        if (std::ranges::find(distinct, c) == distinct.end()) distinct.push_back(c);
    return distinct.size() <= kMostCallees ? distinct : std::vector<Candidate>{};
}

bool Values::add_callees(const Function& f, const Operand& o, std::vector<Candidate>& out, int depth) {
    if (depth > kDeepestValue || out.size() > kMostCallees) return false;
    if (!o.constant.empty()) {
        const bool known = names_.function(o.constant) || names_.classes().knows(o.constant) ||
                           is_optimizer_class(o.constant.str());
        if (known) out.push_back({o.constant, false});
        return known;
    }
    if (!o.refers.empty()) {
        const Reading read =
            o.refers.str().find_first_of("#@") == 0 ? Reading{} : finder_.read(o.refers, package_of(f));
        if (read.function || !read.in_class.empty()) {
            out.push_back({read.function ? read.function->usr : read.in_class, false});
            return true;
        }
        const Place place = place_of(f, o.refers);
        if (!place.operand) return add_global(f, o, out, depth + 1);
        return add_callees(*place.function, *place.operand, out, depth + 1);
    }
    if (const Call* call = call_of(f, o)) {
        if (reads_item(*call) || is_next(*call)) return add_items(f, call->args[0], out, depth + 1);
        if (holds_modules(call->name.str())) return add_contents(f, *call, out, depth + 1);
        const bool of_library = call->name.str().find('.') != std::string_view::npos;
        if (call->callee.empty())
            if (const std::int32_t same = python::passes_on(*call); same != kNone)
                return add_callees(f, call->args[static_cast<std::size_t>(same)], out, depth + 1);
        if (call->kind == CallKind::constructor && (of_library || names_.classes().knows(call->name))) {
            out.push_back({call->name, true});
            return true;
        }
        if (call->name.str() == "getattr" && call->args.size() >= 2) return add_attribute(f, *call, out);
        if (const Function* callee = names_.function(call->callee))
            return add_returned(*callee, out, depth + 1);
        // The object that a class from a table makes: LOSSES[name](width).
        if (leaf(call->name.str()) != "__call__" || call->args.empty()) {
            const bool same = call->kind == CallKind::method && !call->args.empty() &&
                              passes_itself_on(leaf(call->name.str()));
            return same && add_callees(f, call->args[0], out, depth + 1);
        }
        std::vector<Candidate> makers;
        if (!add_callees(f, call->args[0], makers, depth + 1)) return false;
        for (Candidate& maker : makers) {
            if (maker.is_object || !names_.classes().knows(maker.name)) return false;
            out.push_back({maker.name, true});
        }
        return !makers.empty();
    }
    if (o.param == kNone) return !o.name.empty() && add_held(f, o, out, depth + 1);
    if (o.param == 0 && !f.parent_class.empty()) return false;
    bool any = false;
    for (const Caller& caller : callers_.get(f.usr)) {
        const Place given = argument_or_default(*caller.function, *caller.call, f, o.param);
        if (!given.operand || !add_callees(*given.function, *given.operand, out, depth + 1)) return false;
        any = true;
    }
    const Place standard = any ? Place{} : default_of(f, o.param);
    return any || (standard.operand && add_callees(f, *standard.operand, out, depth + 1));
}

// The calls whose results the constructor of the class stores in an attribute, one per branch; or the one method that
// stores any.
Values::Made Values::made_for_self(Symbol in_class, Symbol attribute) const {
    const Classes& classes = names_.classes();
    const auto [init, value] = classes.kept(in_class, attribute);
    if (const Call* made = value ? call_of(*init, *value) : nullptr) return {init, {made}};
    const auto stored_by = [&](const Function* f) {
        Made found{f, {}};
        for (const Call& call : f->calls)
            if (call.result.name == attribute && !call.in_place) found.calls.push_back(&call);
        return found;
    };
    const Function* const constructor = classes.method(in_class, "__init__");
    Made found = constructor ? stored_by(constructor) : Made{};
    if (!found.calls.empty()) return found;
    for (const Function* f : classes.methods(in_class)) {
        Made other = stored_by(f);
        if (other.calls.empty()) continue;
        if (!found.calls.empty()) return {constructor, {}};
        found = std::move(other);
    }
    return found;
}

// `model` after `if deep: model = Deep()`, `else: model = timm.create_model(name)`: what is known of the branches.
bool Values::add_branches(const Function& f, Symbol name, std::uint32_t before_line,
                          std::vector<Candidate>& out, int depth) {
    std::vector<Candidate> known;
    bool all_known = true;
    for (std::size_t i = 0; i < f.calls.size(); ++i) {
        const Call& made = f.calls[i];
        if (made.result.name != name || made.in_place || made.span.line >= before_line) continue;
        Operand one;
        one.call = static_cast<std::int32_t>(i);
        const std::size_t before = known.size();
        if (add_callees(f, one, known, depth)) continue;
        known.resize(before);
        all_known = false;
    }
    for (Candidate& candidate : known) {
        candidate.is_open |= !all_known;
        out.push_back(candidate);
    }
    return !known.empty();
}

// The same of a variable of a module: "train.model".
bool Values::add_global(const Function& f, const Operand& o, std::vector<Candidate>& out, int depth) {
    const std::string_view name = o.refers.str();
    if (name.find_first_of("#@") == 0 || name.find('.') == name.npos) return false;
    const Symbol module(std::string(mp::lint::package_of(name)).append(".<module>"));
    const Function* const statements = names_.function(module);
    if (!statements) return false;
    const bool is_inside = statements == &f && o.span.known();
    return add_branches(*statements, Symbol(leaf(name)), is_inside ? o.span.line : ~std::uint32_t{0}, out,
                        depth);
}

// An attribute of self, the variable of a loop over a container, and one that branches give a value.
bool Values::add_held(const Function& f, const Operand& o, std::vector<Candidate>& out, int depth) {
    if (is_attribute_of_self(o)) {
        const auto [init, value] = names_.classes().kept(f.parent_class, o.name);
        if (value) return add_callees(*init, *value, out, depth);
        const auto [maker, all] = made_for_self(f.parent_class, o.name);
        for (const Call* made : all) {
            Operand one;
            one.call = static_cast<std::int32_t>(made - maker->calls.data());
            if (!add_callees(*maker, one, out, depth)) return false;
        }
        return !all.empty();
    }
    bool any = false;
    for (const Alias& alias : f.aliases) {
        if (!alias.item || alias.name != o.name) continue;
        Operand container;
        container.name = alias.of;
        if (alias.of.empty() || !add_items(f, container, out, depth)) return false;
        any = true;
    }
    return any || (o.span.known() && add_branches(f, o.name, o.span.line, out, depth));
}

// getattr(torch.optim, args.optimizer)
bool Values::add_attribute(const Function& f, const Call& call, std::vector<Candidate>& out) {
    if (call.args[0].constant.str() != "torch.optim") return false;
    const Known name = of(f, call.args[1]);
    const std::string_view text = unquoted(name.constant.str());
    out.push_back({text.empty() ? kAnyOptimizer : Symbol(std::string("torch.optim.").append(text)), false});
    return true;
}

bool Values::add_returned(const Function& f, std::vector<Candidate>& out, int depth) {
    for (const Operand& o : f.returned)
        if (o.constant.str() != "None" && !add_callees(f, o, out, depth)) return false;
    return !f.returned.empty();
}

// What a list, a table or a container of modules holds.
bool Values::add_items(const Function& f, const Operand& container, std::vector<Candidate>& out, int depth) {
    if (depth > kDeepestValue || out.size() > kMostCallees) return false;
    const std::size_t before = out.size();
    if (!container.refers.empty()) {
        if (!container.refers.str().starts_with('#')) {
            const Reading read = finder_.read(container.refers, package_of(f));
            if (read.bound.definition) add_registered(read.bound.definition->name, out);
        }
        const Place place = place_of(f, container.refers);
        const bool is_held =
            place.operand && (call_of(*place.function, *place.operand) || place.operand->param != kNone);
        if (is_held) return add_items(*place.function, *place.operand, out, depth + 1) || out.size() > before;
    }
    if (const Call* made = call_of(f, container)) return add_contents(f, *made, out, depth);
    if (is_attribute_of_self(container) && !f.parent_class.empty()) {
        const auto [init, all] = made_for_self(f.parent_class, container.name);
        for (const Call* made : all)
            if (!add_contents(*init, *made, out, depth + 1)) return false;
        return init && add_later(*init, container.name, out, depth) && out.size() > before;
    }
    if (container.param != kNone) return add_passed_items(f, container.param, out, depth + 1);
    if (container.name.empty()) return false;
    for (const Call& call : f.calls)  // layers = [], and then layers += [Block()]
        if (call.result.name == container.name && is_display(call))
            return add_contents(f, call, out, depth) || out.size() > before;
    return false;
}

// What the lists hold that the callers of a function pass.
bool Values::add_passed_items(const Function& f, std::int32_t param, std::vector<Candidate>& out, int depth) {
    if (param == 0 && !f.parent_class.empty()) return false;
    bool any = false;
    for (const Caller& caller : callers_.get(f.usr)) {
        const Operand* given = argument_for(*caller.call, f, param);
        if (!given || !add_items(*caller.function, *given, out, depth)) return false;
        any = true;
    }
    return any;
}

// What the call gives that made a container, or an item of a container that is one itself.
bool Values::add_contents(const Function& f, const Call& made, std::vector<Candidate>& out, int depth) {
    if (depth > kDeepestValue) return false;
    const std::string_view name = made.name.str(), method = leaf(name);
    if (is_display(made)) return add_display(f, made, out, depth);
    if (holds_modules(name)) {
        for (const Operand& item : made.args) {
            const Call* const inner = call_of(f, item);
            const bool is_list = !item.keyword.empty() || (inner && holds_items(*inner));
            if (!(is_list ? add_items(f, item, out, depth + 1) : add_callees(f, item, out, depth + 1)))
                return false;
        }
        return add_later(f, made.result.name, out, depth);
    }
    if (const Function* callee = names_.function(made.callee); callee && made.kind != CallKind::constructor) {
        for (const Operand& o : callee->returned)
            if (!add_items(*callee, o, out, depth + 1)) return false;
        return !callee->returned.empty();
    }
    const bool passes = method == "values" || method == "items" || method == "__mul__" ||
                        method == "OrderedDict" || passes_itself_on(method);
    if (made.args.empty() || !(passes || reads_item(made) || is_next(made))) return false;
    return add_items(f, made.args[0], out, depth + 1);
}

bool Values::add_display(const Function& f, const Call& display, std::vector<Candidate>& out, int depth) {
    for (const Operand& item : display.args) {
        if (is_quoted(item.constant.str())) continue;  // the name of a module
        const Call* const inner = call_of(f, item);
        const bool is_list = item.keyword.str() == "*" || (inner && is_display(*inner));
        if (!(is_list ? add_items(f, item, out, depth + 1) : add_callees(f, item, out, depth + 1)))
            return false;
    }
    return add_later(f, display.result.name, out, depth);
}

// layers.append(Block()), layers += [Block()], blocks["up"] = Block()
bool Values::add_later(const Function& f, Symbol container, std::vector<Candidate>& out, int depth) {
    if (container.empty()) return true;
    for (const Call& call : f.calls) {
        if (call.args.size() < 2 || call.args[0].name != container) continue;
        const std::string_view method = leaf(call.name.str());
        const bool one = method == "append" || method == "__setitem__" || method == "insert";
        const bool many = method == "extend" || (method == "__iadd__" && call.in_place);
        if (one && !add_callees(f, call.args.back(), out, depth + 1)) return false;
        if (many && !add_items(f, call.args[1], out, depth + 1)) return false;
    }
    return true;
}

bool Values::add_registered(Symbol container, std::vector<Candidate>& out) {
    const auto known = registered_.find(container);
    if (known == registered_.end()) return false;
    out.insert(out.end(), known->second.begin(), known->second.end());
    return true;
}

// `TABLE[name] = f` at module level, and decorators whose body stores what they are given in a table.
void Values::read_registries(const std::vector<Unit>& units, const std::vector<Caller>& stores) {
    std::unordered_map<Symbol, Symbol> tables;  // by decorator
    for (const auto& [f, call] : stores) {
        if (call->args.size() != 3 || call->args[0].refers.empty()) continue;
        if (call->args[0].refers.str().starts_with('#')) continue;
        const Reading read = finder_.read(call->args[0].refers, package_of(*f));
        if (!read.bound.definition) continue;
        const Operand& stored = call->args[2];
        const Symbol table = read.bound.definition->name;
        if (names_.function(stored.constant) || names_.classes().knows(stored.constant))
            registered_[table].push_back({stored.constant, false});
        if (stored.param == kNone) continue;
        tables[f->usr] = table;
        tables[Symbol(mp::lint::package_of(f->usr.str()))] = table;  // the function around it
    }
    if (tables.empty()) return;
    for (const Unit& unit : units)
        if (unit.language == Language::python)
            for (const Function& f : unit.functions) add_decorated(f, tables);
}

void Values::add_decorated(const Function& f, const std::unordered_map<Symbol, Symbol>& tables) {
    for (const Symbol annotation : f.annotations) {
        const std::string_view text = annotation.str();
        const Reading read = finder_.read(Symbol(text.substr(0, text.find('('))), package_of(f));
        const auto table = read.function ? tables.find(read.function->usr) : tables.end();
        if (table == tables.end()) continue;
        const bool of_class = f.usr.str().ends_with(".<class>");
        registered_[table->second].push_back({of_class ? f.parent_class : f.usr, false});
    }
}

}  // namespace mp::lint
