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

bool exists(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
}

// Generated and downloaded code is not the user's.
bool is_build_directory(const std::string& path, std::string_view name) {
    static constexpr std::array<std::string_view, 6> kNames{"build",        "_deps", "CMakeFiles",
                                                            "node_modules", "venv",  "__pycache__"};
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
    return name.starts_with("cmake-build-") || exists(path + "/CMakeCache.txt");
}

class Walker {
public:
    explicit Walker(const std::function<bool(const std::string&)>& excluded)
        : excluded_(excluded) {}

    // An explicit list of directories still to read: no recursion, however deep the tree is.
    void walk(std::string directory, Discovered& out) {
        std::vector<std::string> pending{std::move(directory)};
        while (!pending.empty()) {
            const std::string at = std::move(pending.back());
            pending.pop_back();
            DIR* open = ::opendir(at.c_str());
            if (!open) continue;
            std::vector<std::string> names;
            while (const dirent* entry = ::readdir(open)) names.emplace_back(entry->d_name);
            ::closedir(open);
            // Sorted, so that of several names of one file the same one is kept on every machine.
            std::sort(names.begin(), names.end());
            for (const std::string& name : names) visit(at, name, pending, out);
        }
    }

    bool first_time(const struct stat& info) {
        return seen_.insert({info.st_dev, info.st_ino}).second;
    }

private:
    void visit(const std::string& at, std::string_view name, std::vector<std::string>& pending,
               Discovered& out) {
        if (name.starts_with('.')) return;
        const std::string path = (at == "/" ? at : at + "/") + std::string(name);
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0 || excluded_(path)) return;
        if (S_ISDIR(info.st_mode)) {
            if (!is_build_directory(path, name) && first_time(info)) pending.push_back(path);
        } else if (S_ISREG(info.st_mode) && (is_source(name) || is_header(name)) &&
                   first_time(info)) {
            (is_source(name) ? out.sources : out.headers).push_back(path);
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
    std::vector<std::string> directories;
    for (const std::string& input : inputs) {
        const std::string path = absolute_path(input, working_directory);
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0) return Error{input + ": " + std::strerror(errno), ""};
        if (S_ISDIR(info.st_mode)) {
            if (walker.first_time(info)) directories.push_back(path);
        } else if (!S_ISREG(info.st_mode)) {
            return Error{input + ": neither a file nor a directory", ""};
        } else if (walker.first_time(info)) {
            out.named.push_back(path);
        }
    }
    for (std::string& directory : directories) walker.walk(std::move(directory), out);
    std::sort(out.sources.begin(), out.sources.end());
    std::sort(out.headers.begin(), out.headers.end());
    return out;
}

}  // namespace mp::lint
