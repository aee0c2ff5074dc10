#include "analyzer/driver/torch_pin.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "kernels/base/files.hpp"
#include "kernels/base/words.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = std::uint64_t{1} << 20;

bool holds_requirements(const fs::path& file) {
    const std::string name = file.filename().string(), end = file.extension().string();
    if (end == ".txt") return name.starts_with("requirements");
    if (end == ".yml" || end == ".yaml") return name.starts_with("env") || name.starts_with("conda");
    return name == "pyproject.toml";
}

std::string_view without_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text;
}

// "torch==2.2.0" somewhere in the line; in a conda environment "- pytorch=2.2" too. Unknown for other lines.
TorchVersion pinned_by(std::string_view line, bool is_conda) {
    line = without_blanks(line);
    if (line.starts_with('#') || (is_conda && !line.starts_with('-'))) return {};
    constexpr std::string_view kName = "torch";
    for (std::size_t at = line.find(kName); at != line.npos; at = line.find(kName, at + 1)) {
        std::string_view before = line.substr(0, at), after = without_blanks(line.substr(at + kName.size()));
        if (is_conda && before.ends_with("py")) before.remove_suffix(2);
        const bool begins = before.empty() || std::string_view(" \t\"'").find(before.back()) != before.npos;
        const std::string_view equals = after.substr(0, after.starts_with("==") ? 2 : 1);
        if (!begins || (equals != "==" && !(is_conda && equals == "="))) continue;
        after.remove_prefix(equals.size());
        if (const auto version = parse_torch_version(without_blanks(after))) return *version;
    }
    return {};
}

}  // namespace

TorchVersion pinned_torch(const std::string& folder) {
    TorchVersion pin;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        std::string text;
        if (!holds_requirements(entry.path()) || !read_file(entry.path().string(), text, kLargest)) continue;
        const bool is_conda = entry.path().extension().string().starts_with(".y");
        for (std::string_view rest = text; !rest.empty();) {
            const TorchVersion version = pinned_by(next_line(rest), is_conda);
            if (!version.known()) continue;
            if (pin.known() && pin != version) return {};
            pin = version;
        }
    }
    return pin;
}

}  // namespace mp::lint
