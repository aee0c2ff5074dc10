#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include <nlohmann/json.hpp>

#include "analyzer/clang/command_line.hpp"
#include "analyzer/clang/device_header.hpp"
#include "analyzer/clang/extract.hpp"
#include "kernels/base/files.hpp"
#include "kernels/base/paths.hpp"

namespace fs = std::filesystem;
using nlohmann::json;

namespace mp::lint {
namespace {

constexpr std::uintmax_t kMaxBytes = 512u << 20;
constexpr int kMaxDepth = 16;  // the format needs three levels
constexpr const char* kName = "compile_commands.json";

bool regular(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed);
}

Result<std::string> read(const fs::path& path) {
    std::error_code failed;
    if (!regular(path)) {
        return Error{path.string() + ": not a file",
                     "make one with cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or with `ninja -t compdb`"};
    }
    if (fs::file_size(path, failed) > kMaxBytes) return Error{path.string() + ": larger than 512 MiB", ""};
    std::string text;
    if (!read_file(path.string(), text)) return Error{path.string() + ": cannot be read", ""};
    return text;
}

// The parser keeps a value per level, so the depth is limited before parsing to bound its memory.
bool nests_too_deeply(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\') {
            ++i;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '[' || c == '{')) {
            if (++depth > kMaxDepth) return true;
        } else if (!in_string && (c == ']' || c == '}')) {
            --depth;
        }
    }
    return false;
}

std::string text_of(const json& entry, const char* key) {
    const auto at = entry.find(key);
    return at != entry.end() && at->is_string() ? at->get_ref<const std::string&>() : std::string();
}

// "arguments" has priority over "command", as the format's specification requires.
std::vector<std::string> words_of(const json& entry) {
    const auto at = entry.find("arguments");
    if (at == entry.end()) return split_command(text_of(entry, "command"));
    std::vector<std::string> words;
    if (!at->is_array()) return words;
    for (const auto& word : *at) {
        if (!word.is_string()) return {};
        words.push_back(word.get_ref<const std::string&>());
    }
    return words;
}

Result<CompileCommand> command_of(const json& entry, const std::string& where) {
    if (!entry.is_object()) return Error{where + " is not an object", ""};
    CompileCommand command{.file = text_of(entry, "file"),
                           .directory = text_of(entry, "directory"),
                           .arguments = words_of(entry)};
    if (command.file.empty()) return Error{where + " has no \"file\"", ""};
    if (command.arguments.empty()) return Error{where + " has neither \"command\" nor \"arguments\"", ""};
    return command;
}

// A name with a NUL byte would be cut by system calls and would name another file.
bool has_nul(const CompileCommand& command) {
    const auto nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    return nul(command.file) || nul(command.directory) ||
           std::any_of(command.arguments.begin(), command.arguments.end(), nul);
}

std::string database_in(const fs::path& dir) {
    if (regular(dir / kName)) return (dir / kName).string();
    const fs::path build = dir / "build";
    if (regular(build / kName)) return (build / kName).string();
    std::vector<fs::path> found;
    std::error_code failed;
    for (fs::directory_iterator it(build, failed), end; !failed && it != end; it.increment(failed)) {
        if (regular(it->path() / kName)) found.push_back(it->path() / kName);
    }
    if (found.empty()) return {};
    return std::min_element(found.begin(), found.end())->string();
}

bool has_any(const fs::path& dir, std::initializer_list<const char*> names) {
    std::error_code failed;
    return std::any_of(names.begin(), names.end(),
                       [&](const char* n) { return fs::exists(dir / n, failed); });
}

// The file's directory and its parents up to the project's root: the nearest repository, else the outermost
// directory that looks like a project. Without either, only one parent: include directories of an unrelated
// tree above would provide wrong headers.
std::vector<fs::path> project_dirs(const fs::path& file) {
    std::vector<fs::path> dirs;
    std::size_t outermost = 2;
    for (auto dir = file.parent_path(); dirs.size() < 12; dir = dir.parent_path()) {
        if (dir == dir.root_path() || dir == "/usr" || dir == "/usr/local" || dir == "/home") break;
        dirs.push_back(dir);
        if (has_any(dir, {".git", ".hg", "mp-lint.toml"})) return dirs;
        const bool project = has_any(dir, {"setup.py", "pyproject.toml", "CMakeLists.txt", "Makefile",
                                           "LICENSE", "LICENSE.txt", "README.md"});
        if (project) outermost = std::max(outermost, dirs.size());
    }
    dirs.resize(std::min(dirs.size(), outermost));
    return dirs;
}

std::vector<std::string> include_roots(const fs::path& file) {
    std::vector<std::string> roots;
    std::error_code failed;
    for (const auto& dir : project_dirs(file)) {
        bool usual = roots.empty();  // the file's own directory
        std::vector<std::string> below;
        for (const auto* name : {"include", "includes", "src", "src/include", "src/public", "csrc"}) {
            if (!fs::is_directory(dir / name, failed)) continue;
            usual = true;
            below.push_back((dir / name).string());
        }
        if (usual) roots.push_back(dir.string());
        roots.insert(roots.end(), below.begin(), below.end());
    }
    return roots;
}

}  // namespace

Result<CompileDatabase> CompileDatabase::load(const std::string& path_or_directory) {
    std::error_code failed;
    fs::path path = path_or_directory;
    if (fs::is_directory(path, failed)) path /= kName;
    auto text = read(path);
    if (!text) return text.error();
    const auto not_one = [&](const std::string& why) { return Error{path.string() + ": " + why, ""}; };
    if (nests_too_deeply(*text)) return not_one("nested too deeply for a compilation database");
    const json all = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (all.is_discarded()) return not_one("not JSON");
    if (!all.is_array()) return not_one("not a list of commands");

    CompileDatabase database{.path = path.string(), .commands = {}};
    const std::string base = fs::absolute(path, failed).parent_path().string();
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto command = command_of(all[i], path.string() + ": entry " + std::to_string(i + 1));
        if (!command) return command.error();
        if (has_nul(*command)) return not_one("entry " + std::to_string(i + 1) + " has a NUL byte");
        command->directory = absolute_file(command->directory, base);
        database.commands.push_back(std::move(*command));
    }
    return database;
}

std::string CompileDatabase::find(const std::string& start) {
    std::error_code failed;
    fs::path dir = fs::absolute(start, failed).lexically_normal();
    if (!fs::is_directory(dir, failed)) dir = dir.parent_path();
    for (;; dir = dir.parent_path()) {
        if (auto found = database_in(dir); !found.empty()) return found;
        if (dir == dir.root_path() || dir.empty()) return {};
    }
}

namespace {

// ZENITH_HAS_CUDA, USE_CUDA: an option of a build, and no macro of the compiler or of the toolkit.
bool switches_cuda_on(std::string_view macro) {
    constexpr std::array<std::string_view, 5> kVerbs{"HAS_", "HAVE_", "USE_", "WITH_", "ENABLE_"};
    const std::size_t name = macro.find("CUDA");
    return name != std::string_view::npos && !macro.starts_with('_') && !macro.starts_with("CUDA") &&
           std::ranges::any_of(kVerbs, [&](std::string_view verb) {
               const std::size_t at = macro.find(verb);
               return at != std::string_view::npos && at + verb.size() == name &&
                      (at == 0 || macro[at - 1] == '_');
           });
}

// The macros of its build that a .cu file asks for: only a build with CUDA compiles it.
std::vector<std::string> cuda_switches(const std::string& file) {
    constexpr std::uint64_t kMostBytes = 8u << 20;
    std::vector<std::string> found;
    std::string text;
    if (!file.ends_with(".cu") || !read_file(file, text, kMostBytes)) return found;
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t at = text.find("CUDA"); at != std::string::npos; at = text.find("CUDA", at + 1)) {
        const std::size_t line = text.rfind('\n', at) + 1;
        const std::string_view directive = std::string_view(text).substr(line, at - line);
        const std::size_t hash = directive.find_first_not_of(" \t");
        if (hash == std::string_view::npos || directive[hash] != '#' ||
            directive.find("if") == std::string_view::npos)
            continue;
        std::size_t begin = at, end = at;
        while (begin > line && is_part(text[begin - 1])) --begin;
        while (end < text.size() && is_part(text[end])) ++end;
        const std::string macro = text.substr(begin, end - begin);
        if (switches_cuda_on(macro) && std::ranges::find(found, macro) == found.end()) found.push_back(macro);
    }
    return found;
}

}  // namespace

CompileCommand default_command(const std::string& file, const std::vector<std::string>& flags_after_dashes) {
    std::error_code failed;
    const fs::path directory = fs::current_path(failed);
    const std::string full = absolute_file(file, directory.string());
    // WITH_CUDA: the macro with which extensions of torch build their kernels; without it nothing calls these.
    CompileCommand command{
        .file = full, .directory = directory.string(), .arguments = {"clang++", "-std=c++20", "-DWITH_CUDA"}};
    const std::string extension = fs::path(full).extension().string();
    if (extension == ".c") command.arguments = {"clang"};
    for (const std::string& macro : cuda_switches(full)) command.arguments.push_back("-D" + macro + "=1");
    if (holds_device_code(full)) command.arguments.insert(command.arguments.end(), {"-x", "cuda"});
    for (const auto& root : include_roots(full)) command.arguments.push_back("-I" + root);
    command.arguments.insert(command.arguments.end(), flags_after_dashes.begin(), flags_after_dashes.end());
    command.arguments.insert(command.arguments.end(), {"-c", full});
    return command;
}

}  // namespace mp::lint
