#include "analyzer/driver/torch_pin.hpp"

#include <filesystem>
#include <fstream>
#include <regex>

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

bool holds_requirements(const fs::path& file) {
    const std::string name = file.filename().string(), end = file.extension().string();
    if (end == ".txt") return name.starts_with("requirements");
    if (end == ".yml" || end == ".yaml") return name.starts_with("env") || name.starts_with("conda");
    return name == "pyproject.toml";
}

}  // namespace

std::string pinned_torch(const std::string& folder) {
    static const std::regex kPin(R"re(^(?:.*[\s"'])?torch\s*==\s*(\d+\.\d+).*)re");
    static const std::regex kCondaPin(R"re(^\s*-\s*["']?(?:py)?torch\s*==?\s*(\d+\.\d+).*)re");
    std::string pin;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        if (!holds_requirements(entry.path())) continue;
        const bool is_conda = entry.path().extension().string().starts_with(".y");
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
            std::smatch found;
            const bool is_comment = line.find_first_not_of(" \t") == line.find('#');
            if (is_comment || line.find("torch") == std::string::npos) continue;
            if (!std::regex_match(line, found, is_conda ? kCondaPin : kPin)) continue;
            if (!pin.empty() && pin != found.str(1)) return {};
            pin = found.str(1);
        }
    }
    return pin;
}

}  // namespace mp::lint
