#include "analyzer/driver/python_reach.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "analyzer/cache/file_state.hpp"
#include "analyzer/driver/python_scan.hpp"
#include "kernels/numerics/dtype.hpp"

namespace mp::lint {
namespace {

// A package that re-exports everything of more modules than this says nothing about where a name is.
constexpr std::size_t kMostStars = 16;

// Names that re-exports lead around in a circle grow; nobody writes longer ones.
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

bool opens_by_itself(const Function& f) {
    return std::any_of(f.calls.begin(), f.calls.end(),
                       [](const Call& call) { return mentions_precision(call.name.str()); });
}

// What callers get from it has a low dtype.
bool gives_low(const Function& f) {
    if (is_low_precision(f.returns)) return true;
    return std::any_of(f.returned.begin(), f.returned.end(),
                       [](const Operand& o) { return is_low_precision(o.dtype); });
}

}  // namespace

void PythonReach::add(std::string_view module, bool wanted, bool relevant,
                      std::vector<std::uint64_t> imports) {
    const std::size_t file = files_.size();
    File& added = files_.emplace_back();
    added.relevant = relevant;
    added.module = Symbol(module).str();
    added.imports = std::move(imports);
    Name& named = name(added.module);
    if (named.file == kNoFile) named.file = file;
    if (wanted) make_whole(file);
}

// With all names above it.
PythonReach::Name& PythonReach::name(std::string_view text) {
    const auto [found, added] = names_.try_emplace(text);
    Name& named = found->second;
    if (!added) return named;
    named.text = text;
    for (Name* below = &named; !(text = parent(text)).empty();) {
        const auto [at, is_new] = names_.try_emplace(text);
        below->above = &at->second;
        if (!is_new) break;
        below = &at->second;
        below->text = text;
    }
    return named;
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

// The file whose module the name begins with is needed; what it re-exports leads on.
void PythonReach::demand(std::string_view text) {
    if (text.size() > kLongestName) return;
    Name& asked = name(text);
    if (std::exchange(asked.demanded, true)) return;
    const Name* module = &asked;
    while (module && module->file == kNoFile) module = module->above;
    if (!module) return;
    need(module->file);
    File& file = files_[module->file];
    file.asked.push_back(&asked);
    reach(name(top_level(text, module->text)));
    follow(file, asked);
}

// A top-level function or class is called: what it calls is needed too.
void PythonReach::reach(Name& part) {
    if (std::exchange(part.reached, true)) return;
    const std::vector<Symbol> calls = std::exchange(part.calls, {});
    calls_.insert(calls_.end(), calls.begin(), calls.end());
}

void PythonReach::follow(const File& file, const Name& asked) {
    for (const Name* prefix = &asked; prefix; prefix = prefix->above) {
        // `from .a import a` makes "pkg.a" stand for "pkg.a.a": that is followed once, not for ever.
        if (prefix->alias.empty() || asked.text.starts_with(prefix->alias)) continue;
        const std::string_view rest = asked.text.substr(prefix->text.size());
        return demand(Symbol(std::string(prefix->alias).append(rest)).str());
    }
    if (file.stars.size() > kMostStars) return;
    for (const std::string_view module : file.stars)
        demand(Symbol(std::string(module).append(".").append(last(asked.text))).str());
}

void PythonReach::export_name(std::uint64_t hash) {
    if (exported_.insert(hash).second) fresh_exports_.push_back(hash);
}

// A context manager brings in a region that it opens itself, or one that its file imports.
void PythonReach::note_exports(std::size_t file, const Unit& unit) {
    File& at = files_[file];
    for (const Function& f : unit.functions) {
        const bool manager = is_manager(f);
        const bool low = gives_low(f) || (manager && (at.imports_low || opens_by_itself(f)));
        if (!low && !manager) continue;
        const std::string_view own = manager ? parent(f.name.str()) : f.name.str();
        const std::string_view name = last(f.parent_class.empty() ? own : f.parent_class.str());
        for (const std::string_view word : {name, last(at.module)}) {
            if (low)
                export_name(hash_bytes(word));
            else
                at.managers.push_back(hash_bytes(word));
        }
    }
}

void PythonReach::take(std::size_t file, const Unit& unit) {
    note_aliases(file, unit);
    const File& at = files_[file];
    // What is asked for meanwhile is followed then.
    for (std::size_t i = 0, count = at.asked.size(); i < count; ++i) follow(at, *at.asked[i]);
    follow_calls(file, unit);
    note_exports(file, unit);
}

void PythonReach::note_aliases(std::size_t file, const Unit& unit) {
    for (const Function& f : unit.functions) {
        for (const TypeUse& type : f.types) {
            const std::string_view alias = type.alias.str();
            const std::string_view title = type.name.str();
            if (alias.empty()) continue;
            if (title.ends_with(".*")) {
                files_[file].stars.push_back(title.substr(0, title.size() - 2));
            } else if (alias.size() <= kLongestName) {
                Name& named = name(alias);
                if (named.alias.empty()) named.alias = title;
            }
        }
    }
}

// Whether a call may lead to another file: not to what is local, nor where another has led already.
bool PythonReach::leads_on(Symbol name) {
    Lead& known = leads_[name];
    if (known == Lead::unasked) {
        const std::string_view text = name.str();
        const bool local = text.starts_with("?.") || text.find('.') == std::string_view::npos;
        known = local ? Lead::nowhere : Lead::on;
    }
    return known == Lead::on;
}

void PythonReach::follow_calls(std::size_t file, const Unit& unit) {
    File& at = files_[file];
    Name* part = nullptr;
    for (const Function& f : unit.functions) {
        const std::string_view top = top_level(f.name.str(), at.module);
        if (!part || part->text != top) at.parts.push_back(part = &name(top));
        const bool runs = at.whole || part->reached || top.ends_with("<module>");
        std::vector<Symbol>& to = runs ? calls_ : part->calls;
        for (const Symbol base : f.bases)
            if (leads_on(base)) to.push_back(base);
        for (const Call& call : f.calls) {
            const Symbol called = call.callee.empty() ? call.name : call.callee;
            if (leads_on(called)) to.push_back(called);
        }
    }
}

std::vector<std::uint64_t> PythonReach::low_names() const {
    std::vector<std::uint64_t> out(exported_.begin(), exported_.end());
    std::sort(out.begin(), out.end());
    return out;
}

// Whoever imports something that brings in a low dtype or a region.
void PythonReach::follow_imports() {
    const std::vector<std::uint64_t> exports = [this] {
        std::vector<std::uint64_t> out = std::exchange(fresh_exports_, {});
        std::sort(out.begin(), out.end());
        return out;
    }();
    for (std::size_t i = 0; i < files_.size(); ++i) {
        File& f = files_[i];
        if (f.imports_low || !f.relevant) continue;
        const bool imports =
            std::any_of(f.imports.begin(), f.imports.end(), [&](std::uint64_t name) {
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
        if (!leads_on(called)) continue;
        leads_[called] = Lead::nowhere;
        demand(called.str());
    }
    std::sort(pending_.begin(), pending_.end());
    return std::exchange(pending_, {});
}

}  // namespace mp::lint
