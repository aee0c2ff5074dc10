#include "analyzer/driver/python_reach.hpp"

#include <algorithm>
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
    files_.push_back({.relevant = relevant, .needed = false, .whole = false,
                      .imports_low = false, .imports = std::move(imports), .asked = {},
                      .stars = {}, .parts = {}, .managers = {}});
    module_of_.emplace_back(module);
    modules_.try_emplace(std::string(module), file);
    if (wanted) make_whole(file);
}

void PythonReach::make_whole(std::size_t file) {
    if (files_[file].whole) return;
    files_[file].whole = true;
    need(file);
    for (const std::string& part : files_[file].parts) reach(part);
}

void PythonReach::need(std::size_t file) {
    if (files_[file].needed || !files_[file].relevant) return;
    files_[file].needed = true;
    pending_.push_back(file);
}

// The file whose module the name begins with is needed; what it re-exports leads on.
void PythonReach::demand(std::string name) {
    if (name.size() > kLongestName || !demanded_.insert(name).second) return;
    for (std::string_view module = name; !module.empty(); module = parent(module)) {
        const auto found = modules_.find(std::string(module));
        if (found == modules_.end()) continue;
        need(found->second);
        File& file = files_[found->second];
        file.asked.push_back(name);
        reach(std::string(top_level(name, found->first)));
        follow(file, name);
        return;
    }
}

// A top-level function or class is called: what it calls is needed too.
void PythonReach::reach(const std::string& part) {
    if (!reached_.insert(part).second) return;
    const auto calls = waiting_.extract(part);
    if (!calls.empty()) calls_.insert(calls_.end(), calls.mapped().begin(), calls.mapped().end());
}

void PythonReach::follow(File& file, const std::string& name) {
    for (std::string_view prefix = name; !prefix.empty(); prefix = parent(prefix)) {
        const auto alias = aliases_.find(std::string(prefix));
        // `from .a import a` makes "pkg.a" stand for "pkg.a.a": that is followed once, not for ever.
        if (alias == aliases_.end() || name.starts_with(alias->second)) continue;
        return demand(alias->second + name.substr(prefix.size()));
    }
    if (file.stars.size() > kMostStars) return;
    const std::string rest(last(name));
    for (const std::string& module : std::vector<std::string>(file.stars)) demand(module + "." + rest);
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
        for (const std::string_view word : {name, last(module_of_[file])}) {
            if (low)
                export_name(hash_bytes(word));
            else
                at.managers.push_back(hash_bytes(word));
        }
    }
}

void PythonReach::take(std::size_t file, const Unit& unit) {
    for (const Function& f : unit.functions) {
        for (const TypeUse& type : f.types) {
            if (type.alias.empty()) continue;
            const std::string_view title = type.name.str();
            if (title.ends_with(".*"))
                files_[file].stars.emplace_back(title.substr(0, title.size() - 2));
            else
                aliases_.try_emplace(std::string(type.alias.str()), title);
        }
    }
    for (const std::string& name : std::vector<std::string>(files_[file].asked))
        follow(files_[file], name);
    follow_calls(file, unit);
    note_exports(file, unit);
}

void PythonReach::follow_calls(std::size_t file, const Unit& unit) {
    std::unordered_map<std::string, std::vector<Symbol>> parts;
    for (const Function& f : unit.functions) {
        std::vector<Symbol>& names = parts[std::string(top_level(f.name.str(), module_of_[file]))];
        names.insert(names.end(), f.bases.begin(), f.bases.end());
        for (const Call& call : f.calls)
            names.push_back(call.callee.empty() ? call.name : call.callee);
    }
    for (auto& [part, names] : parts) {
        const bool runs =
            files_[file].whole || part.ends_with("<module>") || reached_.contains(part);
        std::vector<Symbol>& to = runs ? calls_ : waiting_[part];
        for (const Symbol name : names) {
            const std::string_view text = name.str();
            if (!text.starts_with("?.") && text.find('.') != std::string_view::npos)
                to.push_back(name);
        }
        files_[file].parts.push_back(part);
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
        const Symbol name = calls_.back();
        calls_.pop_back();
        if (called_.insert(name).second) demand(std::string(name.str()));
    }
    std::sort(pending_.begin(), pending_.end());
    return std::exchange(pending_, {});
}

}  // namespace mp::lint
