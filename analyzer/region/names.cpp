#include "analyzer/region/names.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "analyzer/region/calls.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kModule = ".<module>";
// Limit for re-exports of re-exports, so that a cycle of them ends.
constexpr int kMaxAliases = 8;

std::vector<const Function*> python_functions(const std::vector<Unit>& units) {
    std::vector<const Function*> found;
    for (const Unit& unit : units)
        if (unit.language == Language::python)
            for (const Function& f : unit.functions) found.push_back(&f);
    return found;
}

Symbol joined(Symbol scope, std::string_view name) {
    if (scope.empty()) return Symbol(name);
    return Symbol(std::string(scope.str()).append(".").append(name));
}

std::uint64_t key_of(Symbol package, Symbol name) { return std::uint64_t{package.id()} << 32 | name.id(); }

bool is_module_class(std::string_view base) {
    return base.starts_with("torch.nn.") || leaf(base) == "LightningModule" ||
           leaf(base) == "PreTrainedModel";
}

}  // namespace

std::string_view module_of(const Unit& unit) {
    for (const Function& f : unit.functions)
        if (const std::string_view name = f.name.str(); name.ends_with(kModule))
            return name.substr(0, name.size() - kModule.size());
    return {};
}

std::string_view package_of(std::string_view module) {
    const std::size_t dot = module.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : module.substr(0, dot);
}

Names::Names(std::vector<Unit>& units) {
    const std::vector<const Function*> functions = python_functions(units);
    auto others = in_background([&] { know_all(functions); });
    classes_ = Classes(functions);
    collect_functions(functions);
    collect_aliases(functions);
    others.get();
    collect_folders(units);
    resolve_bases(units);
}

// Records the name and all its enclosing scopes, and the last part of each.
void Names::know(Symbol name) {
    while (!name.empty() && std::exchange(known_[name], 1) == 0) {
        const std::string_view text = name.str();
        last_parts_[Symbol(text.substr(text.rfind('.') + 1))] = 1;
        const std::string_view scope = package_of(text);
        if (scope == std::exchange(last_scope_, scope))
            return;  // most functions are in the scope of the one before
        name = Symbol(scope);
    }
}

void Names::know_all(std::span<const Function* const> functions) {
    for (const Function* f : functions) {
        know(f->usr);
        if (f->name != f->usr) last_parts_[Symbol(leaf(f->name.str()))] = 1;
        know(f->parent_class);
        for (const Definition& d : f->definitions) know(d.name);
        if (f->name.str().ends_with(kModule))
            for (const TypeUse& t : f->types)
                if (t.alias != t.name) know(t.alias);
    }
}

void Names::collect_functions(std::span<const Function* const> functions) {
    for (const Function* f : functions) {
        if (const Function*& first = functions_[f->usr]; !first) first = f;
        for (const Definition& d : f->definitions) {
            std::uint32_t& number = definition_number_[d.name];
            if (number != 0) continue;  // the first module of this name
            const std::string_view text = d.name.str();
            defined_parts_[Symbol(text.substr(text.rfind('.') + 1))] = 1;
            definitions_.push_back({f, &d});
            number = static_cast<std::uint32_t>(definitions_.size());
        }
    }
    forget_what_is_set(functions);
}

// `settings.DTYPE = torch.float32` in another file: which of the two values holds when is not known.
void Names::forget_what_is_set(std::span<const Function* const> functions) {
    for (const Function* f : functions)
        for (const Setting& s : f->settings)
            if (const std::uint32_t number = definition_number_.get(s.key); number != 0)
                definitions_[number - 1] = {};
}

void Names::collect_aliases(std::span<const Function* const> functions) {
    for (const Function* f : functions) {
        if (!f->name.str().ends_with(kModule)) continue;
        for (const TypeUse& t : f->types) {
            const std::string_view alias = t.alias.str(), target = t.name.str();
            if (alias.empty() || alias == target) continue;
            if (alias.ends_with(".*") && target.ends_with(".*"))
                stars_[Symbol(alias.substr(0, alias.size() - 2))].push_back(
                    Symbol(target.substr(0, target.size() - 2)));
            else if (Symbol& first = aliases_[t.alias]; first.empty())
                first = t.name;
        }
    }
}

// `from recipes.train.loop import run`, where recipes/ has no __init__.py and recipes/train/ has one: the module is
// train.loop, and the folders above its package lead to it, too.
void Names::collect_folders(const std::vector<Unit>& units) {
    constexpr int kMostFolders = 2;
    std::string_view last;
    for (const Unit& unit : units) {
        if (unit.language != Language::python) continue;
        const std::string_view module = module_of(unit), path = unit.path.str();
        const std::size_t depth = static_cast<std::size_t>(std::ranges::count(module, '.')) +
                                  (path.ends_with("/__init__.py") ? 2 : 1);
        std::size_t end = path.size();
        for (std::size_t i = 0; i < depth && end != std::string_view::npos && end > 0; ++i)
            end = path.rfind('/', end - 1);
        if (module.empty() || end == std::string_view::npos || end == 0) continue;
        const std::string_view above = path.substr(0, end);  // "/a/recipes" of /a/recipes/train/loop.py
        const std::string_view outermost = module.substr(0, module.find('.'));
        if (path.substr(0, end + 1 + outermost.size()) ==
            std::exchange(last, path.substr(0, end + 1 + outermost.size())))
            continue;
        std::string folders;
        std::size_t at = above.size();
        for (int i = 0; i < kMostFolders && at > 0; ++i) {
            const std::size_t slash = above.rfind('/', at - 1);
            if (slash == std::string_view::npos) break;
            const std::string_view folder = above.substr(slash + 1, at - slash - 1);
            folders = std::string(folder) + "." + folders;
            at = slash;
            const Symbol longer(folders + std::string(outermost));
            if (known_.get(longer) != 0) continue;  // a module of the program has this name
            if (Symbol& first = aliases_[longer]; first.empty()) first = Symbol(outermost);
            folders_[Symbol(folder)] = 1;
        }
    }
}

// Looks up all bases before changing any, so that the result does not depend on the order.
void Names::resolve_bases(std::vector<Unit>& units) {
    std::vector<Symbol> resolved;
    const auto for_each_base = [&](auto visit) {
        for (Unit& unit : units) {
            if (unit.language != Language::python) continue;
            const Symbol package(package_of(module_of(unit)));
            for (Function& f : unit.functions)
                for (Symbol& base : f.bases) visit(base, package);
        }
    };
    NameFinder finder(*this);  // a local finder: inherited methods are not known yet
    for_each_base([&](Symbol base, Symbol package) { resolved.push_back(finder.find(base, package).name); });
    auto next = resolved.begin();
    for_each_base([&](Symbol& base, Symbol) { base = *next++; });
}

// Replaces the longest prefix that is an alias; returns the name itself when there is none.
Symbol Names::follow_alias(Symbol name) const {
    const std::string_view text = name.str();
    for (std::string_view prefix = text; !prefix.empty(); prefix = package_of(prefix)) {
        const Symbol scope(prefix);
        const std::string_view rest = text.substr(prefix.size());
        if (const Symbol target = aliases_.get(scope); !target.empty())
            return Symbol(std::string(target.str()).append(rest));
        const auto stars = rest.empty() ? stars_.end() : stars_.find(scope);
        if (stars == stars_.end()) continue;
        const std::string_view first = rest.substr(1, rest.find('.', 1) - 1);
        for (const Symbol module : stars->second)
            if (defines(joined(module, first))) return Symbol(std::string(module.str()).append(rest));
    }
    return name;
}

Symbol Names::follow_aliases(Symbol name) const {
    for (int i = 0; i < kMaxAliases && !defines(name); ++i) {
        const Symbol followed = follow_alias(name);
        if (followed == name) break;
        name = followed;
    }
    return name;
}

// Finds a function, a class, or a method of a class.
bool Names::look_up(Symbol name, Meaning& found) const {
    if (const Function* f = function(name)) {
        found = {.name = name, .function = f};
        return true;
    }
    if (classes_.knows(name)) {
        found = {.name = name, .is_class = true};
        return true;
    }
    const std::string_view text = name.str();
    const std::string_view scope = package_of(text);
    if (scope.empty()) return false;
    const Symbol in_class(scope);
    if (!classes_.knows(in_class)) return false;
    found = find_method(in_class, text.substr(scope.size() + 1));
    return true;
}

bool Names::read(Symbol name, Reading& found) const {
    found.function = function(name);
    if (found.function) return true;
    if (classes_.knows(name)) return found.in_class = name, true;
    found.bound = definition(name);
    if (found.bound.definition) return true;
    const std::string_view scope = package_of(name.str());
    if (scope.empty() || !classes_.knows(Symbol(scope))) return false;
    const std::string_view attribute = name.str().substr(scope.size() + 1);
    found.function = classes_.method(Symbol(scope), attribute);
    if (found.function) return true;
    if (defined_parts_.get(Symbol(attribute)) == 0) return false;
    classes_.for_each_ancestor(Symbol(scope), [&](Symbol base) {
        if (!found.bound.definition) found.bound = definition(joined(base, attribute));
    });
    return found.bound.definition != nullptr;
}

Meaning Names::find_method(Symbol in_class, std::string_view method) const {
    if (const Function* f = classes_.method(in_class, method)) return {.name = f->usr, .function = f};
    const Symbol base = classes_.library_base(in_class);
    if (base.empty()) return {.name = joined(in_class, method)};
    // apply() of an autograd.Function runs its forward().
    if (method == "apply" && leaf(base.str()) == "Function")
        return {.name = joined(in_class, method), .function = classes_.method(in_class, "forward")};
    const Symbol library = is_module_class(base.str()) ? Symbol("torch.nn.Module") : base;
    return {.name = joined(library, method)};
}

bool Names::is_module(Symbol in_class) const {
    return classes_.knows(in_class) && is_module_class(classes_.library_base(in_class).str());
}

Meaning NameFinder::find(Symbol name, Symbol package) {
    const auto [entry, is_new] = found_.try_emplace(key_of(package, name));
    if (is_new) entry->second = look_for(name, package);
    return entry->second;
}

// Tries the name as it is, then inside of each package around its user, until an attempt succeeds.
template <class Try>
void NameFinder::for_each_spelling(Symbol name, Symbol package, Try attempt) {
    const Symbol first(name.str().substr(0, name.str().find('.')));
    if (leads_on({}, first) && attempt(names_.follow_aliases(name), true)) return;
    for (Symbol at = package; !at.empty(); at = Symbol(package_of(at.str())))
        if (leads_on(at, first) && attempt(names_.follow_aliases(joined(at, name.str())), false)) return;
}

Meaning NameFinder::look_for(Symbol name, Symbol package) {
    Meaning found{.name = name};
    for_each_spelling(name, package, [&](Symbol spelling, bool absolute) {
        if (absolute) found.name = spelling;
        return names_.look_up(spelling, found);
    });
    return found;
}

Reading NameFinder::read(Symbol name, Symbol package) {
    const auto [entry, is_new] = read_.try_emplace(key_of(package, name));
    if (is_new)
        for_each_spelling(name, package, [&, &found = entry->second](Symbol spelling, bool) {
            return names_.read(spelling, found);
        });
    return entry->second;
}

// Whether a name with this first part, used in this package, can resolve to something of the
// program. False for most names of libraries.
bool NameFinder::leads_on(Symbol package, Symbol first) {
    const auto [entry, is_new] = leads_on_.try_emplace(key_of(package, first), false);
    if (!is_new) return entry->second;
    const auto knows = [&](Symbol scope) { return names_.known_.get(joined(scope, first.str())) != 0; };
    if (package.empty() && names_.folders_.get(first) != 0) return entry->second = true;
    const auto stars = names_.stars_.find(package);
    entry->second = knows(package) || names_.classes_.knows(package) ||
                    names_.follow_alias(package) != package ||
                    (stars != names_.stars_.end() && std::ranges::any_of(stars->second, knows));
    return entry->second;
}

}  // namespace mp::lint
