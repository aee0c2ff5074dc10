#include "analyzer/region/names.hpp"

#include "analyzer/region/arguments.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kModule = ".<module>";
// Re-exports of re-exports; a cycle of them ends here.
constexpr int kMaxAliases = 8;

bool is_module_class(std::string_view base) {
    return base.starts_with("torch.nn.") || last_name(base) == "LightningModule" ||
           last_name(base) == "PreTrainedModel";
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

std::vector<const Function*> Names::python_functions(const std::vector<Unit>& units) {
    std::vector<const Function*> found;
    for (const Unit& unit : units)
        if (unit.language == Language::python)
            for (const Function& f : unit.functions) found.push_back(&f);
    return found;
}

Names::Names(std::vector<Unit>& units) : classes_(python_functions(units)) {
    for (const Function* f : python_functions(units)) functions_.try_emplace(f->usr, f);
    collect_aliases(units);
    resolve_bases(units);
    classes_ = Classes(python_functions(units));
}

void Names::collect_aliases(const std::vector<Unit>& units) {
    for (const Function* f : python_functions(units)) {
        if (!f->name.str().ends_with(kModule)) continue;
        for (const TypeUse& t : f->types) {
            const std::string_view alias = t.alias.str(), target = t.name.str();
            if (alias.empty() || alias == target) continue;
            if (alias.ends_with(".*") && target.ends_with(".*"))
                stars_[Symbol(alias.substr(0, alias.size() - 2))].push_back(
                    Symbol(target.substr(0, target.size() - 2)));
            else
                aliases_.try_emplace(t.alias, t.name);
        }
    }
}

void Names::resolve_bases(std::vector<Unit>& units) {
    for (Unit& unit : units) {
        if (unit.language != Language::python) continue;
        const std::string package(package_of(module_of(unit)));
        for (Function& f : unit.functions)
            for (Symbol& base : f.bases) base = find(base.str(), package).name;
    }
}

// Replaces the longest beginning of the name that is an alias.
bool Names::follow_alias(std::string& name) const {
    for (std::size_t end = name.size(); end != std::string::npos && end > 0;
         end = name.rfind('.', end - 1)) {
        const Symbol prefix(std::string_view(name).substr(0, end));
        if (const auto found = aliases_.find(prefix); found != aliases_.end()) {
            name = std::string(found->second.str()) + name.substr(end);
            return true;
        }
        if (end == name.size()) continue;
        const auto stars = stars_.find(prefix);
        if (stars == stars_.end()) continue;
        const std::string rest = name.substr(end);
        const std::string first = rest.substr(0, rest.find('.', 1));
        for (const Symbol module : stars->second) {
            if (!defines(Symbol(std::string(module.str()) + first))) continue;
            name = std::string(module.str()) + rest;
            return true;
        }
    }
    return false;
}

std::string Names::follow_aliases(std::string name) const {
    for (int i = 0; i < kMaxAliases && !defines(Symbol(name)) && follow_alias(name); ++i) {}
    return name;
}

const Function* Names::function(Symbol usr) const {
    const auto found = functions_.find(usr);
    return found == functions_.end() ? nullptr : found->second;
}

// A function, a class, or a method of a class.
bool Names::look_up(const std::string& name, Meaning& found) const {
    const Symbol symbol(name);
    if (const Function* f = function(symbol)) {
        found = {.name = symbol, .function = f};
        return true;
    }
    if (classes_.knows(symbol)) {
        found = {.name = symbol, .is_class = true};
        return true;
    }
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot == 0) return false;
    const Symbol in_class(std::string_view(name).substr(0, dot));
    if (!classes_.knows(in_class)) return false;
    found = find_method(in_class, std::string_view(name).substr(dot + 1));
    return true;
}

Meaning Names::find(std::string_view name, std::string_view package) const {
    Meaning found{.name = Symbol(name)};
    const std::string followed = follow_aliases(std::string(name));
    if (look_up(followed, found)) return found;
    for (std::string_view at = package; !at.empty(); at = package_of(at)) {
        const std::string beside = follow_aliases(std::string(at) + "." + std::string(name));
        if (look_up(beside, found)) return found;
    }
    found.name = Symbol(followed);
    return found;
}

Meaning Names::find_method(Symbol in_class, std::string_view method) const {
    if (const Function* f = classes_.method(in_class, method))
        return {.name = f->usr, .function = f};
    const Symbol base = classes_.library_base(in_class);
    const std::string own = std::string(in_class.str()) + "." + std::string(method);
    if (base.empty()) return {.name = Symbol(own)};
    // A Function's apply() runs its forward().
    if (method == "apply" && last_name(base.str()) == "Function")
        return {.name = Symbol(own), .function = classes_.method(in_class, "forward")};
    const std::string_view library =
        is_module_class(base.str()) ? std::string_view("torch.nn.Module") : base.str();
    return {.name = Symbol(std::string(library) + "." + std::string(method))};
}

}  // namespace mp::lint
