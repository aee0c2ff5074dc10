#include "analyzer/driver/pinned_version.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "kernels/base/files.hpp"
#include "kernels/base/words.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = std::uint64_t{1} << 20;

enum class Source : std::uint8_t { none, requirements, conda, readme };

Source source_of(const fs::path& file) {
    const std::string name = file.filename().string(), end = file.extension().string();
    if (end == ".txt" && name.starts_with("requirements")) return Source::requirements;
    if ((end == ".yml" || end == ".yaml") && (name.starts_with("env") || name.starts_with("conda")))
        return Source::conda;
    if (name == "README.md") return Source::readme;
    return name == "pyproject.toml" ? Source::requirements : Source::none;
}

// Whether a line of this file asks for packages.
bool asks(std::string_view line, Source source) {
    if (source == Source::readme) return line.find("install ") != line.npos;
    return !line.starts_with('#') && (source != Source::conda || line.starts_with('-'));
}

std::string_view without_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text;
}

// "torch==2.2.0" somewhere in the line; where conda may install it "pytorch=2.2" too. Unknown for other lines.
TorchVersion pinned_by(std::string_view line, Source source, std::string_view package) {
    line = without_blanks(line);
    if (!asks(line, source)) return {};
    const bool is_conda = source != Source::requirements;
    for (std::size_t at = line.find(package); at != line.npos; at = line.find(package, at + 1)) {
        std::string_view before = line.substr(0, at),
                         after = without_blanks(line.substr(at + package.size()));
        if (is_conda && package == "torch" && before.ends_with("py")) before.remove_suffix(2);
        const bool begins = before.empty() || std::string_view(" \t\"'").find(before.back()) != before.npos;
        const std::string_view equals = after.substr(0, after.starts_with("==") ? 2 : 1);
        if (!begins || (equals != "==" && !(is_conda && equals == "="))) continue;
        after.remove_prefix(equals.size());
        if (const auto version = parse_torch_version(without_blanks(after))) return *version;
    }
    return {};
}

}  // namespace

TorchVersion pinned_version(const std::string& folder, std::string_view package) {
    TorchVersion pin;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        std::string text;
        const Source source = source_of(entry.path());
        if (source == Source::none || !read_file(entry.path().string(), text, kLargest)) continue;
        for (std::string_view rest = text; !rest.empty();) {
            const TorchVersion version = pinned_by(next_line(rest), source, package);
            if (!version.known()) continue;
            if (pin.known() && pin != version) return {};
            pin = version;
        }
    }
    return pin;
}

}  // namespace mp::lint
