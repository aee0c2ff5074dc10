#include "analyzer/cache/inputs.hpp"

#include <filesystem>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

// Include trees are shallow. A unit with more directories is not stored.
constexpr std::size_t kMaxDirectories = 4000;

using Names = std::unordered_set<std::string>;

// Every component of every path: the only names that an include of the unit can begin with.
Names components(const Inputs& inputs) {
    Names out;
    auto add = [&out](std::string_view path) {
        while (!path.empty()) {
            const std::size_t slash = path.find('/');
            if (slash != 0) out.emplace(path.substr(0, slash));
            if (slash == std::string_view::npos) break;
            path.remove_prefix(slash + 1);
        }
    };
    for (const InputFile& f : inputs.files) add(f.path.str());
    for (const Symbol name : inputs.missing) add(name.str());
    return out;
}

std::uint64_t hash_names(const std::vector<std::string>& all, const Names& relevant) {
    std::string joined;
    for (const std::string& name : all) {
        if (!relevant.contains(name)) continue;
        joined += name;
        joined += '\0';
    }
    return hash_bytes(joined);
}

bool is_system(std::string_view path) {
    return path.starts_with("/usr/include") || path.starts_with("/usr/lib");
}

bool match_files(Inputs& inputs, FileStates& files, bool& touched) {
    for (InputFile& f : inputs.files) {
        const std::string path(f.path.str());
        const FileStat& now = files.stat(path);
        if (!now.exists || now.id.size != f.id.size) return false;
        if (now.id == f.id) continue;
        if (!now.regular || files.content_hash(path) != f.hash) return false;
        // The same content under a new time, as after a checkout.
        const FileId id = trusted(now.id);
        touched |= id != f.id;
        f.id = id;
    }
    return true;
}

bool match_directories(Inputs& inputs, FileStates& files, bool& touched) {
    Names relevant;
    for (InputDirectory& d : inputs.directories) {
        const std::string path(d.path.str());
        const std::int64_t now = files.stat(path).id.mtime_ns;
        if (now == d.mtime_ns) continue;
        if (relevant.empty()) relevant = components(inputs);
        if (hash_names(files.names(path), relevant) != d.names) return false;
        const std::int64_t mtime = trusted_mtime(now);
        touched |= mtime != d.mtime_ns;
        d.mtime_ns = mtime;
    }
    return true;
}

// The include roots and, below them, every directory whose name is a component of an input's path.
std::vector<InputDirectory> directories_of(const Names& relevant, std::vector<std::string> roots,
                                           FileStates& files) {
    std::vector<InputDirectory> out;
    Names seen;
    while (!roots.empty() && out.size() <= kMaxDirectories) {
        std::string path = std::move(roots.back());
        roots.pop_back();
        if (!seen.insert(path).second) continue;
        // A directory that does not exist is watched too: it may appear.
        const FileStat& now = files.stat(path);
        const std::vector<std::string>& names = files.names(path);
        out.push_back({.path = Symbol(path),
                       .mtime_ns = trusted_mtime(now.id.mtime_ns),
                       .names = hash_names(names, relevant)});
        if (!now.directory) continue;
        for (const std::string& name : names) {
            if (name == "." || name == ".." || !relevant.contains(name)) continue;
            if (files.stat(path + "/" + name).directory) roots.push_back(path + "/" + name);
        }
    }
    return out;
}

}  // namespace

InputsMatch match_inputs(Inputs& inputs, FileStates& files) {
    bool touched = false;
    if (!match_files(inputs, files, touched) || !match_directories(inputs, files, touched))
        return InputsMatch::changed;
    return touched ? InputsMatch::touched : InputsMatch::same;
}

std::optional<Inputs> inputs_of(const Unit& unit, std::vector<std::string> include_roots, FileStates& files) {
    if (unit.dependencies.empty()) return std::nullopt;
    Inputs out;
    for (const Dependency& d : unit.dependencies) {
        const std::string path(d.path.str());
        const FileStat& now = files.stat(path);
        // Changed since it was read, or not a file whose content can be compared.
        if (!now.regular || (d.mtime_ns != 0 && (d.mtime_ns != now.id.mtime_ns || d.size != now.id.size)))
            return std::nullopt;
        const std::uint64_t hash = d.hash ? d.hash : files.content_hash(path);
        out.files.push_back({.path = d.path, .id = trusted(now.id), .hash = hash});
        if (!is_system(path)) include_roots.push_back(fs::path(path).parent_path().string());
    }
    out.missing = unit.coverage.missing_headers;
    out.directories = directories_of(components(out), std::move(include_roots), files);
    if (out.directories.size() > kMaxDirectories) return std::nullopt;
    return out;
}

}  // namespace mp::lint
