#include "kernels/base/paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

namespace mp {

namespace fs = std::filesystem;

std::string absolute_path(std::string_view path, std::string_view directory) {
    const fs::path full = path.starts_with('/') ? fs::path(path) : fs::path(directory) / fs::path(path);
    std::string text = full.lexically_normal().string();
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

std::string absolute_file(const std::string& path, const std::string& directory) {
    std::error_code failed;
    fs::path full = fs::path(directory) / path;
    if (full.is_relative()) full = fs::absolute(full, failed);
    const fs::path tidy = full.lexically_normal();
    // Dropping ".." after a symbolic link would name another file.
    const bool climbs = std::find(full.begin(), full.end(), "..") != full.end();
    if (!climbs || !fs::exists(full, failed) || fs::equivalent(tidy, full, failed)) return tidy.string();
    return full.string();
}

std::string real_path(const std::string& path) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
    return real ? real.get() : path;
}

std::vector<std::string> search_directories(std::string_view code) {
    constexpr std::size_t kLevels = 4;
    std::vector<std::string> directories;
    while (directories.size() < kLevels && code.size() > 1 && code.find('/') != std::string_view::npos) {
        code = code.substr(0, std::max<std::size_t>(code.rfind('/'), 1));
        directories.emplace_back(code);
    }
    return directories;
}

std::string relative_path(std::string_view path, std::string_view base) {
    while (base.size() > 1 && base.ends_with('/')) base.remove_suffix(1);
    if (base.empty() || base == "/" || !path.starts_with(base)) return std::string(path);
    if (path.size() <= base.size() || path[base.size()] != '/') return std::string(path);
    return std::string(path.substr(base.size() + 1));
}

}  // namespace mp
