#include "analyzer/driver/python_reach.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/base/files.hpp"
#include "kernels/base/sorted.hpp"
#include "kernels/numerics/dtype.hpp"

namespace mp::lint {
namespace {

// In a package with more `*` re-exports than this, a name cannot be assigned to a module.
constexpr std::size_t kMostStars = 16;

// Circular re-exports make names longer and longer. No source contains names of this length.
constexpr std::size_t kLongestName = 256;

std::string_view parent(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view last(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// "pkg.mod.Net" of "pkg.mod.Net.forward" in the module "pkg.mod".
std::string_view top_level(std::string_view name, std::string_view module) {
    if (name.size() <= module.size()) return name;
    return name.substr(0, name.find('.', module.size() + 1));
}

bool is_manager(const Function& f) { return f.name.str().ends_with(".__enter__"); }

bool opens_by_itself(const Function& f, const Seeds& seeds) {
    return std::any_of(f.calls.begin(), f.calls.end(),
                       [&](const Call& call) { return seeds.any_in(call.name.str()); });
}

// Whether its result has a low dtype.
bool gives_low(const Function& f) {
    if (is_low_precision(f.returns)) return true;
    return std::any_of(f.returned.begin(), f.returned.end(),
                       [](const Operand& o) { return is_low_precision(o.dtype); });
}

// Whether the name is qualified, and not an attribute of a local value.
bool is_qualified(Symbol called) {
    const std::string_view text = called.str();
    return text.find('.') != std::string_view::npos && !text.starts_with('?') && !text.starts_with('#') &&
           !text.starts_with('@');
}

void add_aliases(const Function& f, Outline& out) {
    for (const TypeUse& type : f.types) {
        const std::string_view alias = type.alias.str();
        const std::string_view title = type.name.str();
        if (alias.empty()) continue;
        if (title.ends_with(".*"))
            out.stars.push_back(Symbol(title.substr(0, title.size() - 2)));
        else if (alias.size() <= kLongestName)
            out.aliases.push_back({type.alias, type.name});
    }
}

void add_calls(const Function& f, std::vector<Symbol>& to) {
    to.insert(to.end(), f.bases.begin(), f.bases.end());
    for (const Call& call : f.calls) {
        to.push_back(call.callee.empty() ? call.name : call.callee);
        // Functions that are passed as arguments, for example to a thread or a checkpoint.
        to.insert(to.end(), call.lambdas.begin(), call.lambdas.end());
        // Values that another file defines.
        for (const Operand& o : call.args)
            if (!o.refers.empty()) to.push_back(o.refers);
    }
    for (const Operand& o : f.returned)
        if (!o.refers.empty()) to.push_back(o.refers);
    for (const Definition& d : f.definitions)
        if (!d.value.refers.empty()) to.push_back(d.value.refers);
    for (const Parameter& p : f.params)
        if (!p.refers.empty()) to.push_back(p.refers);
}

// Whether the value is a low dtype, or a table of some.
bool is_low(const Function& f, const Operand& value) {
    if (is_low_precision(value.dtype)) return true;
    if (value.call < 0) return false;
    const std::vector<Operand>& args = f.calls[static_cast<std::size_t>(value.call)].args;
    return std::ranges::any_of(args, [](const Operand& o) { return is_low_precision(o.dtype); });
}

void add_definitions(const Function& f, std::string_view module, Outline& out) {
    for (const Definition& d : f.definitions) {
        if (!is_low(f, d.value)) continue;
        const std::string_view name = last(f.parent_class.empty() ? d.name.str() : f.parent_class.str());
        for (const std::string_view word : {name, last(module)})
            out.exports.push_back({hash_bytes(word), true});
    }
}

// Whether a method that opens a region calls a method that only subclasses have: those run in the region.
bool leaves_to_subclasses(const Unit& unit, const Function& f, const Seeds& seeds) {
    if (f.parent_class.empty()) return false;
    const auto is_left = [&](const Call& call) {
        return parent(call.callee.str()) == f.parent_class.str() &&
               std::ranges::none_of(unit.functions,
                                    [&](const Function& own) { return own.name == call.callee; });
    };
    // Few methods make such a call, so the search for trigger words comes last.
    return std::ranges::any_of(f.calls, is_left) && opens_by_itself(f, seeds);
}

// self.ctx = torch.autocast("cuda"): a subclass in another file may enter it.
bool keeps_region(const Function& f) {
    return !f.parent_class.empty() && std::ranges::any_of(f.calls, [](const Call& call) {
        return call.kind == CallKind::constructor && last(call.name.str()) == "autocast" &&
               call.result.name.str().starts_with("self.");
    });
}

void add_export(const Unit& unit, const Function& f, std::string_view module, const Seeds& seeds,
                Outline& out) {
    if (leaves_to_subclasses(unit, f, seeds) || keeps_region(f))
        out.exports.push_back({hash_bytes(last(f.parent_class.str())), true});
    const bool manager = is_manager(f);
    const bool low = gives_low(f) || (manager && opens_by_itself(f, seeds));
    if (!low && !manager) return;
    const std::string_view own = manager ? parent(f.name.str()) : f.name.str();
    const std::string_view name = last(f.parent_class.empty() ? own : f.parent_class.str());
    for (const std::string_view word : {name, last(module)}) out.exports.push_back({hash_bytes(word), low});
}

}  // namespace

Outline outline_of(const Unit& unit, std::string_view module, const Seeds& seeds) {
    Outline out;
    for (const Function& f : unit.functions) {
        const std::string_view top = top_level(f.name.str(), module);
        if (out.parts.empty() || out.parts.back().name.str() != top) out.parts.push_back({Symbol(top), {}});
        add_calls(f, out.parts.back().calls);
        add_aliases(f, out);
        add_export(unit, f, module, seeds, out);
        add_definitions(f, module, out);
    }
    for (Outline::Part& part : out.parts) {
        sort_unique(part.calls);
        std::erase_if(part.calls, [](Symbol called) { return !is_qualified(called); });
    }
    std::erase_if(out.parts, [](const Outline::Part& part) { return part.calls.empty(); });
    return out;
}

void PythonReach::add(std::string_view module, bool is_seed, bool is_relevant,
                      std::vector<std::uint64_t> imports) {
    const std::size_t file = files_.size();
    File& added = files_.emplace_back();
    added.relevant = is_relevant;
    const Symbol symbol(module);
    added.module = symbol.str();
    roots_.insert(added.module.substr(0, added.module.find('.')));
    added.imports = std::move(imports);
    Name& named = name(symbol);
    if (named.file == kNoFile) named.file = file;
    if (is_seed) make_whole(file);
}

// Returns the entry of the name, and adds it and the names above it if needed.
PythonReach::Name& PythonReach::name(Symbol symbol) {
    Name* named = names_.get(symbol);
    if (named) return *named;
    for (Name* below = nullptr; !named || !symbol.empty(); symbol = Symbol(parent(symbol.str()))) {
        Name* const known = names_.get(symbol);
        Name* const here = known ? known : &all_names_.emplace_back();
        (below ? below->above : named) = here;
        if (known) break;
        names_[symbol] = here;
        here->text = symbol.str();
        below = here;
    }
    return *named;
}

void PythonReach::make_whole(std::size_t file) {
    if (files_[file].whole) return;
    files_[file].whole = true;
    need(file);
    for (Name* part : files_[file].parts) reach(*part);
}

void PythonReach::need(std::size_t file) {
    if (files_[file].needed || !files_[file].relevant) return;
    files_[file].needed = true;
    pending_.push_back(file);
}

// Adds the file whose module is a prefix of the name to the slice, and follows its re-exports of the name.
void PythonReach::demand(Symbol symbol) {
    if (symbol.empty() || symbol.str().size() > kLongestName) return;
    Name& asked = name(symbol);
    if (std::exchange(asked.demanded, true)) return;
    Name* part = &asked;  // a top-level function or class of the module
    Name* module = &asked;
    while (module && module->file == kNoFile) part = std::exchange(module, module->above);
    if (!module) return;
    need(module->file);
    File& file = files_[module->file];
    file.asked.push_back(&asked);
    reach(*part);
    follow(file, asked);
}

// Marks a called top-level function or class, so that its own calls are followed.
void PythonReach::reach(Name& part) {
    if (std::exchange(part.reached, true)) return;
    const std::vector<Symbol> calls = std::exchange(part.calls, {});
    calls_.insert(calls_.end(), calls.begin(), calls.end());
}

void PythonReach::follow(const File& file, const Name& asked) {
    for (const Name* prefix = &asked; prefix; prefix = prefix->above) {
        // `from .a import a` makes "pkg.a" an alias of "pkg.a.a". Without this check it would be followed for ever.
        if (prefix->alias.empty() || asked.text.starts_with(prefix->alias)) continue;
        const std::string_view rest = asked.text.substr(prefix->text.size());
        return demand(Symbol(std::string(prefix->alias).append(rest)));
    }
    if (file.stars.size() > kMostStars) return;
    for (const Symbol module : file.stars)
        demand(Symbol(std::string(module.str()).append(".").append(last(asked.text))));
}

void PythonReach::export_name(std::uint64_t hash) {
    if (exported_.insert(hash).second) fresh_exports_.push_back(hash);
}

// A context manager exports a region if it opens one itself or if its file imports one.
void PythonReach::note_exports(std::size_t file, const std::vector<Outline::Export>& exports) {
    File& at = files_[file];
    for (const Outline::Export& e : exports) {
        if (e.low || at.imports_low)
            export_name(e.name);
        else
            at.managers.push_back(e.name);
    }
}

void PythonReach::take(std::size_t file, const Outline& outline) {
    for (const Outline::Alias& alias : outline.aliases) {
        Name& named = name(alias.name);
        if (named.alias.empty()) named.alias = alias.stands_for.str();
    }
    files_[file].stars = outline.stars;
    const File& at = files_[file];
    // demand() itself follows names that it adds to `asked` during this loop.
    for (std::size_t i = 0, count = at.asked.size(); i < count; ++i) follow(at, *at.asked[i]);
    follow_calls(file, outline.parts);
    note_exports(file, outline.exports);
}

bool PythonReach::is_below_a_root(Symbol called) const {
    return roots_.contains(called.str().substr(0, called.str().find('.')));
}

void PythonReach::follow_calls(std::size_t file, const std::vector<Outline::Part>& parts) {
    File& at = files_[file];
    std::vector<Symbol> calls;
    for (const Outline::Part& outlined : parts) {
        calls.clear();
        for (const Symbol called : outlined.calls)
            if (is_below_a_root(called)) calls.push_back(called);
        if (calls.empty()) continue;
        Name* part = at.parts.emplace_back(&name(outlined.name));
        const bool runs = at.whole || part->reached || part->text.ends_with("<module>");
        std::vector<Symbol>& to = runs ? calls_ : part->calls;
        to.insert(to.end(), calls.begin(), calls.end());
    }
}

// Adds the files that import a name with a low dtype or a region.
void PythonReach::follow_imports() {
    const std::vector<std::uint64_t> exports = [this] {
        std::vector<std::uint64_t> out = std::exchange(fresh_exports_, {});
        std::sort(out.begin(), out.end());
        return out;
    }();
    for (std::size_t i = 0; i < files_.size(); ++i) {
        File& f = files_[i];
        if (f.imports_low || !f.relevant) continue;
        const bool imports = std::any_of(f.imports.begin(), f.imports.end(), [&](std::uint64_t name) {
            return std::binary_search(exports.begin(), exports.end(), name);
        });
        if (!imports) continue;
        f.imports_low = true;
        make_whole(i);
        for (const std::uint64_t name : f.managers) export_name(name);
    }
}

std::vector<std::size_t> PythonReach::next() {
    while (!fresh_exports_.empty()) follow_imports();
    while (!calls_.empty()) {
        const Symbol called = calls_.back();
        calls_.pop_back();
        if (std::exchange(followed_[called], 1) == 0) demand(called);
    }
    std::sort(pending_.begin(), pending_.end());
    return std::exchange(pending_, {});
}

}  // namespace mp::lint
