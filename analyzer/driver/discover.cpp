#include "analyzer/driver/discover.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/analyses/python_code.hpp"
#include "analyzer/driver/given_options.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using Identity = std::pair<dev_t, ino_t>;

template <std::size_t N>
bool ends_with_any(std::string_view path, const std::array<std::string_view, N>& endings) {
    return std::any_of(endings.begin(), endings.end(),
                       [path](std::string_view e) { return path.ends_with(e); });
}

// Whether the directory contains generated or downloaded code, which is not the user's.
bool is_build_directory(std::string_view name) {
    static constexpr std::array<std::string_view, 9> kNames{
        "build",       "_deps",         "CMakeFiles",    "node_modules",  "venv",
        "__pycache__", "site-packages", "dist-packages", "__pypackages__"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.starts_with("cmake-build-");
}

// Whether a file of this name marks its directory as a CMake build or a virtual environment.
bool is_mark_of_build(std::string_view name) { return name == "CMakeCache.txt" || name == "pyvenv.cfg"; }

// Whether the entry is a regular file that no analysis reads.
bool is_of_no_use(const dirent& found) {
    const std::string_view name = found.d_name;
    return found.d_type == DT_REG && !is_python(name) && !is_source(name) && !is_header(name) &&
           !is_project_text(name) && !is_mark_of_build(name);
}

// An entry of a directory that is not hidden and that an analysis may read.
struct Entry {
    std::string path;
    std::string_view name;  // part of `path`
    struct ::stat info{};
};
using Entries = std::vector<Entry>;

Entries entries_of(const std::string& directory) {
    Entries out;
    DIR* open = ::opendir(directory.c_str());
    if (!open) return out;
    const std::string above = directory == "/" ? directory : directory + "/";
    while (const dirent* found = ::readdir(open)) {
        if (found->d_name[0] == '.' || is_of_no_use(*found)) continue;
        Entry entry{.path = above + found->d_name, .name = {}};
        // Relative to the open directory: the kernel need not walk the whole path again.
        if (::fstatat(::dirfd(open), found->d_name, &entry.info, 0) == 0) out.push_back(std::move(entry));
    }
    ::closedir(open);
    // Sorted, so that a file with several names keeps the same one on every machine.
    std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
    for (Entry& e : out) e.name = std::string_view(e.path).substr(above.size());
    return out;
}

bool holds_a_build(const Entries& entries) {
    return std::any_of(entries.begin(), entries.end(),
                       [](const Entry& e) { return is_mark_of_build(e.name); });
}

Identity identity_of(const struct ::stat& info) { return {info.st_dev, info.st_ino}; }

class Walker {
public:
    Walker(const std::function<bool(const std::string&)>& excluded, int threads)
        : excluded_(excluded), threads_(threads) {}

    // An explicit list of directories still to read: no recursion, however deep the tree is.
    void walk(const std::string& directory, Discovered& out) {
        root_ = directory;
        read_ahead();
        std::vector<std::string> pending{directory};
        while (!pending.empty()) {
            const std::string at = std::move(pending.back());
            pending.pop_back();
            const auto known = read_.find(at);
            const Entries entries = known == read_.end() ? entries_of(at) : std::move(known->second);
            if (is_left_out(at, entries)) continue;
            for (const Entry& entry : entries) visit(entry, pending, out);
        }
        read_.clear();
    }

    bool first_time(const struct stat& info) { return seen_.insert(identity_of(info)).second; }

private:
    // Reads the tree level by level, each level on several threads, because most of the time is spent in system calls.
    void read_ahead() {
        std::set<Identity> met;  // links may form a cycle
        for (std::vector<std::string> level{root_}; !level.empty();) {
            std::vector<Entries> found(level.size());
            in_parallel(level.size(), threads_, [&](std::size_t i) { found[i] = entries_of(level[i]); });
            std::vector<std::string> below;
            for (std::size_t i = 0; i < level.size(); ++i) {
                if (!is_left_out(level[i], found[i])) {
                    for (const Entry& e : found[i])
                        if (is_entered(e) && met.insert(identity_of(e.info)).second) below.push_back(e.path);
                }
                read_.emplace(std::move(level[i]), std::move(found[i]));
            }
            level = std::move(below);
        }
    }

    bool is_left_out(const std::string& directory, const Entries& entries) const {
        return directory != root_ && holds_a_build(entries);
    }

    bool is_entered(const Entry& e) const {
        return S_ISDIR(e.info.st_mode) && !is_build_directory(e.name) && !excluded_(e.path);
    }

    void visit(const Entry& e, std::vector<std::string>& pending, Discovered& out) {
        if (is_entered(e)) {
            if (first_time(e.info)) pending.push_back(e.path);
        } else if (S_ISREG(e.info.st_mode) && !excluded_(e.path)) {
            keep(e.path, e.info, out);
        }
    }

    void keep(const std::string& path, const struct stat& info, Discovered& out) {
        if (is_python(path)) {
            if (first_time(info)) out.python.push_back({path, id_of(info)});
        } else if (is_source(path) || is_header(path)) {
            if (first_time(info)) (is_source(path) ? out.sources : out.headers).push_back(path);
        } else if (is_project_text(path)) {
            if (first_time(info)) out.texts.push_back({path, id_of(info)});
        }
    }

    const std::function<bool(const std::string&)>& excluded_;
    int threads_;
    std::string root_;
    std::unordered_map<std::string, Entries> read_;
    std::set<Identity> seen_;
};

}  // namespace

bool is_source(std::string_view path) {
    return ends_with_any(path, std::array<std::string_view, 4>{".cpp", ".cc", ".cxx", ".cu"});
}

bool is_python(std::string_view path) { return path.ends_with(".py") || path.ends_with(".ipynb"); }

bool is_configuration(std::string_view path) {
    return ends_with_any(path, std::array<std::string_view, 4>{".json", ".txt", ".yaml", ".yml"});
}

Result<Discovered> discover(const std::vector<std::string>& inputs, const std::string& working_directory,
                            const std::function<bool(const std::string&)>& excluded, int threads) {
    Discovered out;
    Walker walker(excluded, threads);
    for (const std::string& input : inputs) {
        const std::string path = absolute_path(input, working_directory);
        struct stat info{};
        if (::stat(path.c_str(), &info) != 0) return Error{input + ": " + std::strerror(errno), ""};
        if (S_ISDIR(info.st_mode)) {
            if (walker.first_time(info)) out.roots.push_back(path);
        } else if (!S_ISREG(info.st_mode)) {
            return Error{input + ": neither a file nor a directory", ""};
        } else if (walker.first_time(info)) {
            out.named.push_back(path);
            if (is_python(path) || is_configuration(path)) out.python.push_back({path, id_of(info)});
        }
    }
    const auto named_python = static_cast<std::ptrdiff_t>(out.python.size());
    for (const std::string& directory : out.roots) walker.walk(directory, out);
    std::sort(out.python.begin() + named_python, out.python.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
    std::ranges::sort(out.texts, {}, &FoundFile::path);
    std::sort(out.sources.begin(), out.sources.end());
    std::sort(out.headers.begin(), out.headers.end());
    return out;
}

}  // namespace mp::lint
