#include "runtime/launch/layout.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace mp::launch {
namespace {

bool is_directory(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::string parent_of(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return ".";
    return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string absolute(std::string_view path, std::string_view base) {
    if (path.starts_with('/')) return std::string(path);
    return std::string(base) + (base.ends_with('/') ? "" : "/") + std::string(path);
}

Layout layout_of(std::string_view executable) {
    const std::string prefix = parent_of(parent_of(executable));
    const std::string home = (prefix == "/" ? "" : prefix) + "/lib/mp-trace";
    Layout layout{.tool = std::string(executable),
                  .lint = parent_of(executable) + "/mp-lint",
                  .preload = home + "/" + std::string(kPreloadName),
                  .cuda = home + "/" + std::string(kCudaName),
                  .shim = home + "/python",
                  .adapters = home + "/adapters",
                  .measure = home + "/libmp_measure.a",
                  .sources = (prefix == "/" ? "" : prefix) + "/share/mp-trace/src"};
    if (!is_directory(layout.sources)) layout.sources = MP_SOURCE_DIR;
    return layout;
}

Result<Layout> own_layout() {
    std::array<char, PATH_MAX> path{};
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    if (size <= 0 || static_cast<std::size_t>(size) == path.size())
        return Error{"mp-trace cannot find its own libraries: /proc/self/exe is not readable",
                     "is /proc mounted?"};
    return layout_of(std::string_view(path.data(), static_cast<std::size_t>(size)));
}

std::string adapter_cache(const trace::Environment& environment) {
    const char* cache = environment("XDG_CACHE_HOME");
    if (cache && *cache == '/') return std::string(cache) + "/mp-trace/adapters";
    const char* home = environment("HOME");
    if (home && *home == '/') return std::string(home) + "/.cache/mp-trace/adapters";
    return {};
}

std::string adapter_file(std::string_view id) { return "libmptrace_torch_" + std::string(id) + ".so"; }

std::string optimizer_file(std::string_view id) { return "libmpoptim_" + std::string(id) + ".so"; }

std::string find_adapter(const std::vector<std::string>& directories, std::string_view id) {
    for (const std::string& directory : directories) {
        const std::string path = directory + "/" + adapter_file(id);
        if (::access(path.c_str(), R_OK) == 0) return path;
    }
    return {};
}

}  // namespace mp::launch
