#include "analyzer/driver/discover.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;
using Identity = std::pair<dev_t, ino_t>;

template <std::size_t N>
bool ends_with_any(std::string_view path, const std::array<std::string_view, N>& endings) {
    return std::any_of(endings.begin(), endings.end(),
                       [path](std::string_view e) { return path.ends_with(e); });
}

// Generated and downloaded code is not the user's.
bool is_build_directory(std::string_view name) {
    static constexpr std::array<std::string_view, 9> kNames{
        "build",       "_deps",         "CMakeFiles",    "node_modules",  "venv",
        "__pycache__", "site-packages", "dist-packages", "__pypackages__"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
           name.starts_with("cmake-build-");
}

// The same told by what is in it: a CMake build, a virtual environment.
bool holds_a_build(const std::vector<std::string>& names) {
    return std::binary_search(names.begin(), names.end(), "CMakeCache.txt") ||
           std::binary_search(names.begin(), names.end(), "pyvenv.cfg");
}

class Walker {
public:
    explicit Walker(const std::function<bool(const std::string&)>& excluded)
        : excluded_(excluded) {}

    // An explicit list of directories still to read: no recursion, however deep the tree is.
    void walk(const std::string& directory, Discovered& out) {
        std::vector<std::string> pending{directory};
        while (!pending.empty()) {
            const std::string at = std::move(pending.back());
            pending.pop_back();
            DIR* open = ::opendir(at.c_str());
            if (!open) continue;
            std::vector<std::string> names;
            while (const dirent* entry = ::readdir(open)) names.emplace_back(entry->d_name);
            // Sorted, so that of several names of one file the same one is kept on every machine.
            std::sort(names.begin(), names.end());
            if (at == directory || !holds_a_build(names)) {
                for (const std::string& name : names) visit(open, at, name, pending, out);
            }
            ::closedir(open);
        }
    }

    bool first_time(const struct stat& info) {
        return seen_.insert({info.st_dev, info.st_ino}).second;
    }

private:
    void visit(DIR* directory, const std::string& at, const std::string& name,
               std::vector<std::string>& pending, Discovered& out) {
        if (name.starts_with('.')) return;
        const std::string path = (at == "/" ? at : at + "/") + name;
        struct stat info {};
        // Relative to the open directory: the kernel need not walk the whole path again.
        if (::fstatat(::dirfd(directory), name.c_str(), &info, 0) != 0 || excluded_(path)) return;
        if (S_ISDIR(info.st_mode)) {
            if (!is_build_directory(name) && first_time(info)) pending.push_back(path);
        } else if (S_ISREG(info.st_mode)) {
            keep(path, info, out);
        }
    }

    void keep(const std::string& path, const struct stat& info, Discovered& out) {
        if (is_python(path)) {
            if (first_time(info)) out.python.push_back({path, id_of(info)});
        } else if (is_source(path) || is_header(path)) {
            if (first_time(info)) (is_source(path) ? out.sources : out.headers).push_back(path);
        }
    }

    const std::function<bool(const std::string&)>& excluded_;
    std::set<Identity> seen_;
};

}  // namespace

bool is_source(std::string_view path) {
    return ends_with_any(path, std::array<std::string_view, 4>{".cpp", ".cc", ".cxx", ".cu"});
}

bool is_header(std::string_view path) {
    return ends_with_any(path,
                         std::array<std::string_view, 5>{".h", ".hh", ".hpp", ".hxx", ".cuh"});
}

bool is_python(std::string_view path) { return path.ends_with(".py") || path.ends_with(".ipynb"); }

bool is_configuration(std::string_view path) {
    return path.ends_with(".json") || path.ends_with(".txt");
}

std::string absolute_path(std::string_view path, std::string_view working_directory) {
    fs::path out =
        path.starts_with('/') ? fs::path(path) : fs::path(working_directory) / fs::path(path);
    std::string text = out.lexically_normal().string();
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

Result<Discovered> discover(const std::vector<std::string>& inputs,
                            const std::string& working_directory,
                            const std::function<bool(const std::string&)>& excluded) {
    Discovered out;
    Walker walker(excluded);
    for (const std::string& input : inputs) {
        const std::string path = absolute_path(input, working_directory);
        struct stat info {};
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
    std::sort(out.sources.begin(), out.sources.end());
    std::sort(out.headers.begin(), out.headers.end());
    return out;
}

}  // namespace mp::lint
