#include "analyzer/driver/python_reach.hpp"

#include <algorithm>
#include <utility>

#include "analyzer/cache/file_state.hpp"
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

// What callers get from it has a low dtype, or runs in a region.
bool brings_in(const Function& f) {
    if (is_low_precision(f.returns) || f.name.str().ends_with(".__enter__")) return true;
    return std::any_of(f.returned.begin(), f.returned.end(),
                       [](const Operand& o) { return is_low_precision(o.dtype); });
}

}  // namespace

void PythonReach::add(std::string_view module, bool wanted, bool relevant,
                      std::vector<std::uint64_t> imports) {
    const std::size_t file = files_.size();
    files_.push_back({.relevant = relevant, .needed = false, .imports = std::move(imports),
                      .asked = {}, .stars = {}});
    module_of_.emplace_back(module);
    modules_.try_emplace(std::string(module), file);
    if (wanted) need(file);
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
        follow(file, name);
        return;
    }
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

void PythonReach::note_exports(std::size_t file, const Unit& unit) {
    bool any = false;
    auto add = [this](std::string_view name) {
        const std::uint64_t hash = hash_bytes(name);
        if (exported_.insert(hash).second) fresh_exports_.push_back(hash);
    };
    for (const Function& f : unit.functions) {
        if (!brings_in(f)) continue;
        any = true;
        std::string_view name = f.name.str();
        if (name.ends_with(".__enter__")) name = parent(name);
        add(f.parent_class.empty() ? last(name) : last(f.parent_class.str()));
    }
    if (any) add(last(module_of_[file]));
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
    for (const Function& f : unit.functions) {
        for (const Symbol base : f.bases) demand(std::string(base.str()));
        for (const Call& call : f.calls) {
            const Symbol name = call.callee.empty() ? call.name : call.callee;
            if (!called_.insert(name).second) continue;
            if (!name.str().starts_with("?.") && name.str().find('.') != std::string_view::npos)
                demand(std::string(name.str()));
        }
    }
    note_exports(file, unit);
}

std::vector<std::size_t> PythonReach::next() {
    if (!fresh_exports_.empty()) {
        std::sort(fresh_exports_.begin(), fresh_exports_.end());
        for (std::size_t i = 0; i < files_.size(); ++i) {
            const File& f = files_[i];
            if (f.needed || !f.relevant) continue;
            const bool imports = std::any_of(
                f.imports.begin(), f.imports.end(), [this](std::uint64_t name) {
                    return std::binary_search(fresh_exports_.begin(), fresh_exports_.end(), name);
                });
            if (imports) need(i);
        }
        fresh_exports_.clear();
    }
    std::sort(pending_.begin(), pending_.end());
    return std::exchange(pending_, {});
}

}  // namespace mp::lint
