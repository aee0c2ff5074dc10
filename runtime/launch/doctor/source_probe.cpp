#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernels/base/child.hpp"
#include "kernels/base/escape.hpp"
#include "runtime/launch/doctor/json_values.hpp"
#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/variables.hpp"

namespace fs = std::filesystem;

namespace mp::launch::doctor {
namespace {

constexpr std::uintmax_t kLargestDatabase = 64u << 20;
constexpr std::size_t kMostEntries = 100'000;  // of the folder that the user named
constexpr std::size_t kLargestReport = 16u << 20;

// What the libraries between a program's kernels are told: formats of products and of their sums, collectives, and what
// keeps gradients in the range of their format. Two rules of the family are notes and off by default.
constexpr const char* kSelect = "MP2,MP406,MP408,MP409,MP412";
constexpr const char* kIgnore = "MP208,MP211";

using Files = std::map<std::string, std::set<std::string>>;  // name without folder: paths

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// As mp-lint looks for it: in the folder or in its build folder, then in those above it.
std::string database_above(const fs::path& folder) {
    std::error_code error;
    for (fs::path at = fs::absolute(folder, error); !at.empty(); at = at.parent_path()) {
        for (const char* const place : {"compile_commands.json", "build/compile_commands.json"})
            if (is_file(at / place)) return at / place;
        if (at == at.root_path()) break;
    }
    return {};
}

// Whether an entry of a compile database, which has its command in one text or in words, names a file in `folder`.
bool is_object_in(const std::string& folder, const nlohmann::json& entry) {
    const auto has = [&folder](const std::string& text) { return text.find(folder) != std::string::npos; };
    return has(text_in(entry, "output")) || has(text_in(entry, "command")) ||
           std::ranges::any_of(member(entry, "arguments"),
                               [&](const nlohmann::json& word) { return has(text_of(word)); });
}

// The files of a compile database. CMake puts the objects of a program into CMakeFiles/PROGRAM.dir, so of several files
// with one name that one is the program's.
Files files_of_database(const std::string& path, const std::string& program) {
    std::error_code error;
    if (path.empty() || fs::file_size(path, error) > kLargestDatabase || error) return {};
    std::ifstream in(path, std::ios::binary);
    const nlohmann::json all = nlohmann::json::parse(in, nullptr, false);
    Files files, own;
    if (!all.is_array()) return files;
    const std::string objects = "CMakeFiles/" + fs::path(program).stem().string() + ".dir/";
    for (const nlohmann::json& entry : all) {
        const fs::path file = fs::path(text_in(entry, "directory")) / text_in(entry, "file");
        if (!is_file(file)) continue;
        files[file.filename()].insert(file.lexically_normal());
        if (is_object_in(objects, entry)) own[file.filename()].insert(file.lexically_normal());
    }
    for (const auto& [name, paths] : own) files[name] = paths;
    return files;
}

Files files_in(const fs::path& folder, bool below) {
    Files files;
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    for (std::size_t count = 0; !error && at != fs::end(at) && count < kMostEntries;
         at.increment(error), ++count) {
        if (at->is_directory(error) && (!below || at->path().filename().string().starts_with('.')))
            at.disable_recursion_pending();
        if (at->is_regular_file(error)) files[at->path().filename()].insert(at->path().lexically_normal());
    }
    return files;
}

// "train_gpt2.cu" beside "train_gpt2cu", "train_gpt2" or "train_gpt2.out", which a Makefile makes without objects.
std::string source_beside(const std::string& program) {
    const std::string stem = fs::path(program).replace_extension().string();
    for (const char* const end : {"", "cu"}) {
        if (!stem.ends_with(end)) continue;
        const std::string source = stem.substr(0, stem.size() - std::strlen(end)) + ".cu";
        if (is_file(source)) return source;
    }
    return {};
}

// Adds the files that have the name of a unit, and returns the names that no file has. A name of several files is of
// none of them: one is the program's, and what the others do would be said of it.
std::vector<std::string> take(const std::vector<std::string>& names, const Files& files, SourceFacts& facts) {
    std::vector<std::string> missing;
    for (const std::string& name : names) {
        const auto at = files.find(name);
        if (at == files.end())
            missing.push_back(name);
        else if (at->second.size() == 1)
            facts.files.push_back(*at->second.begin());
        else
            facts.ambiguous.push_back(name);
    }
    return missing;
}

// In the folders of units that were found: a database may lack the rest, as CMake's lacks what a custom command makes.
std::vector<std::string> take_beside(const std::vector<std::string>& names, SourceFacts& facts) {
    std::set<fs::path> folders;
    for (const std::string& file : facts.files) folders.insert(fs::path(file).parent_path());
    Files files;
    for (const fs::path& folder : folders)
        for (const auto& [name, paths] : files_in(folder, false))
            files[name].insert(paths.begin(), paths.end());
    return take(names, files, facts);
}

// A source, and not a part of the C library that the linker adds.
bool is_own_source(const std::string& name) {
    const std::string end = fs::path(name).extension();
    return end == ".cu" || end == ".cpp" || end == ".cc" || end == ".cxx" || end == ".hip" ||
           (end == ".c" && name != "crtstuff.c");
}

void find_files(const SourceRequest& request, SourceFacts& facts) {
    const fs::path place =
        request.folder.empty() ? fs::path(parent_of(request.program)) : fs::path(request.folder);
    std::vector<std::string> names =
        request.program.empty() ? std::vector<std::string>() : unit_names(request.program);
    facts.named = request.program.empty() || !names.empty();
    std::erase_if(names, [](const std::string& name) { return !is_own_source(name); });
    const std::string database = request.flags.empty() ? database_above(place) : std::string();
    facts.missing = take(names, files_of_database(database, request.program), facts);
    if (!facts.files.empty()) {
        facts.database = database;
        facts.missing = take_beside(facts.missing, facts);
        return;
    }
    facts.missing = take(facts.missing, files_in(place, !request.folder.empty()), facts);
    const std::string beside = request.program.empty() ? std::string() : source_beside(request.program);
    if (facts.files.empty() && !beside.empty()) facts.files.push_back(beside);
    if (facts.files.empty() && !request.folder.empty()) {
        facts.files.push_back(request.folder);
        facts.database = database;
    }
}

std::vector<std::string> lint_command(const SourceFacts& facts) {
    std::vector<std::string> words = {facts.lint};
    if (!facts.database.empty()) words.insert(words.end(), {"-p", facts.database});
    words.insert(words.end(), facts.files.begin(), facts.files.end());
    if (!facts.flags.empty()) words.emplace_back("--");
    words.insert(words.end(), facts.flags.begin(), facts.flags.end());
    return words;
}

SourceFinding finding_in(const nlohmann::json& json) {
    return {.rule = text_in(json, "rule"),
            .name = text_in(json, "name"),
            .place = text_in(json, "file") + ":" + std::to_string(number_in(json, "line")) + ":" +
                     std::to_string(number_in(json, "column")),
            .message = text_in(json, "message"),
            .fix = text_in(json, "fix")};
}

// False when the answer is not mp-lint's report.
bool read_report(const std::string& text, SourceFacts& facts) {
    const nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
    const nlohmann::json& units = member(report, "units");
    if (!units.is_array() || units.empty()) return false;
    for (const nlohmann::json& finding : member(report, "findings"))
        if (text_in(finding, "severity") != "note") facts.findings.push_back(finding_in(finding));
    for (const nlohmann::json& unit : units)
        if (text_in(unit, "state") != "ok")
            facts.incomplete.push_back(text_in(unit, "path") + ": " + text_in(unit, "message"));
    return true;
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

SourceFacts probe_sources(const SourceRequest& request) {
    SourceFacts facts;
    facts.flags = request.flags;
    find_files(request, facts);
    if (access(request.lint.c_str(), X_OK) == 0) facts.lint = request.lint;
    if (facts.files.empty() || facts.lint.empty()) return facts;
    std::vector<std::string> words = lint_command(facts);
    for (const std::string& word : words)
        facts.command += (facts.command.empty() ? "" : " ") + shell_word(word);
    words.insert(words.begin() + 1, {"--output", "json", "--select", kSelect, "--ignore", kIgnore});
    const ChildLimits limits{.milliseconds = request.milliseconds, .bytes = kLargestReport};
    const ChildEnd end = run_child({.arguments = words,
                                    .environment = untraced(Variables::of_this_process()).entries(),
                                    .limits = limits});
    // Status 1: it found something; 2: no unit could be read, and the report says why.
    if (!end.started || end.timed_out || end.signal != 0 || !read_report(end.out, facts))
        facts.fault = describe(end, limits) + (end.err.empty() ? "" : ": " + first_line(end.err));
    return facts;
}

}  // namespace mp::launch::doctor
