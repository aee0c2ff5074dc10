#include <filesystem>
#include <system_error>

#include "analyzer/python/extract.hpp"

namespace mp::lint::python {
namespace {

namespace fs = std::filesystem;

bool is_package(const fs::path& directory) {
    std::error_code ignored;
    return fs::exists(directory / "__init__.py", ignored);
}

// The directory from which an import of the file starts: the parent of the outermost package that contains
// it, or the analysed root when no package does.
fs::path import_root(const fs::path& file, const fs::path& root) {
    fs::path directory = file.parent_path();
    if (!is_package(directory)) {
        const fs::path below = file.lexically_relative(root);
        const bool outside = below.empty() || *below.begin() == "..";
        return outside ? directory : root;
    }
    while (directory.has_relative_path() && is_package(directory)) directory = directory.parent_path();
    return directory;
}

}  // namespace

std::string module_name(const std::string& path, const std::string& root) {
    const fs::path file = fs::path(path).lexically_normal();
    const fs::path start = import_root(file, fs::path(root).lexically_normal());
    fs::path below = file.lexically_relative(start);
    below.replace_extension();
    if (below.filename() == "__init__" && below.has_parent_path()) below = below.parent_path();
    std::string name;
    for (const fs::path& part : below) {
        if (!name.empty()) name += '.';
        name += part.string();
    }
    return name;
}

}  // namespace mp::lint::python
