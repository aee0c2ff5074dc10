#include "analyzer/driver/plan.hpp"
#include "analyzer/clang/device_header.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "analyzer/config/glob.hpp"
#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/pinned_version.hpp"
#include "analyzer/driver/pool.hpp"
#include "analyzer/report/display.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_cuda(const std::string& path) { return path.ends_with(".cu") || path.ends_with(".cuh"); }

std::size_t common_prefix(std::string_view a, std::string_view b) {
    const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<std::size_t>(x - a.begin());
}

// The commands of the database, by the real paths of their files, in the order of the database.
class Commands {
public:
    explicit Commands(CompileDatabase database) : database_(std::move(database)) {
        for (CompileCommand& c : database_.commands) {
            const std::string path = absolute_path(c.file, c.directory);
            auto [known, added] = real_.try_emplace(path);
            if (added) known->second = real_path(path);
            by_file_[known->second].push_back(&c);
        }
    }

    std::vector<CompileCommand> of(const std::string& path) const {
        std::vector<CompileCommand> out;
        const auto it = by_file_.find(real_path(path));
        if (it == by_file_.end()) return out;
        for (const CompileCommand* c : it->second) out.push_back(*c);
        return out;
    }

    // The command for a file that has none: the command of the nearest file of the same language, with
    // the file replaced. Neighbours nearly always have the same include paths and macros.
    std::optional<CompileCommand> neighbour(const std::string& path) const {
        const bool device_header = !is_cuda(path) && holds_device_code(path);
        const bool cuda = is_cuda(path) || device_header;
        const CompileCommand* best = nullptr;
        std::string best_path;
        std::size_t most = 0;
        for (const CompileCommand& c : database_.commands) {
            const std::string file = absolute_path(c.file, c.directory);
            const std::size_t prefix = common_prefix(file, path);
            if (is_cuda(file) != cuda || !is_source(file) || prefix <= most) continue;
            best = &c;
            best_path = file;
            most = prefix;
        }
        // Files that share only "/" or "/home" need not belong to one project.
        if (!best || most < fs::path(path).parent_path().parent_path().string().size()) return std::nullopt;
        CompileCommand out = *best;
        for (std::string& argument : out.arguments) {
            if (argument == best->file || absolute_path(argument, best->directory) == best_path)
                argument = path;
        }
        if (device_header) out.arguments.insert(out.arguments.end(), {"-x", "cuda"});
        out.file = path;
        return out;
    }

private:
    CompileDatabase database_;
    std::unordered_map<std::string, std::string> real_;
    std::unordered_map<std::string, std::vector<const CompileCommand*>> by_file_;
};

std::string find_root(const std::string& start) {
    for (fs::path at = start; !at.empty(); at = at.parent_path()) {
        std::error_code none;
        if (fs::exists(at / ".git", none)) return at.string();
        if (at == at.parent_path()) break;
    }
    return {};
}

// Whether tools can install the project: its code has callers elsewhere.
bool is_installable(const std::string& root) {
    std::error_code none;
    std::string settings;
    read_file(root + "/pyproject.toml", settings);
    return fs::exists(root + "/setup.py", none) || fs::exists(root + "/setup.cfg", none) ||
           settings.find("[build-system]") != settings.npos ||
           settings.find("[tool.poetry]") != settings.npos;
}

// Whether the inputs have all files of the project at `root`.
bool has_all_of(const std::string& root, const std::vector<std::string>& inputs, const LintOptions& options) {
    if (root.empty() || !options.exclude.empty()) return false;
    return std::ranges::any_of(inputs, [&](const std::string& input) {
        const std::string folder = absolute_path(input, options.working_directory);
        return root == folder || !relative_path(root, folder).starts_with('/');
    });
}

Result<std::shared_ptr<Commands>> open_database(const LintOptions& options, const FrontEnds& parts,
                                                bool needed, Plan& plan) {
    std::shared_ptr<Commands> none;
    if (options.flags) return none;
    if (!needed && options.database.empty()) return none;
    std::string path = options.database;
    if (path.empty()) {
        path = parts.find_database(start_directory(options));
    } else {
        path = absolute_path(path, options.working_directory);
    }
    if (path.empty()) return none;
    Result<CompileDatabase> database = parts.load_database(path);
    if (!database) return database.error();
    plan.database = database->path;
    return std::make_shared<Commands>(std::move(*database));
}

void add_units(Plan& plan, const std::shared_ptr<Commands>& database, const std::string& path) {
    std::vector<CompileCommand> commands;
    if (database) commands = database->of(path);
    if (commands.empty()) commands.push_back(plan.fallback(path));
    for (CompileCommand& c : commands) {
        c.file = absolute_path(c.file, c.directory);
        plan.commands.push_back(std::move(c));
    }
}

// The name of a module depends on its directory only, so the names are cached per directory.
class ModuleNames {
public:
    ModuleNames(const Discovered& found, const FrontEnds& parts)
        : found_(found), parts_(parts), above_named_(above_named_files()) {}

    std::string of(const std::string& path) {
        const std::size_t slash = path.rfind('/');
        const std::string directory = path.substr(0, slash);
        const std::string file = path.substr(slash + 1);
        const std::string& package = package_of(directory);
        const std::string stem = file.substr(0, file.find('.'));
        if (stem != "__init__") return package + stem;
        return package.substr(0, package.size() - (package.empty() ? 0 : 1));
    }

private:
    const std::string& package_of(const std::string& directory) {
        const auto [known, added] = packages_.try_emplace(directory);
        std::string& prefix = known->second;  // the reference stays valid while others are added
        if (added) prefix = package(directory);
        return prefix;
    }

    bool is_package(const std::string& directory) {
        const auto [known, added] = is_package_.try_emplace(directory);
        if (added) known->second = is_file(directory + "/__init__.py");
        return known->second;
    }

    // "pkg.sub." for the modules in a directory; empty at the root.
    std::string package(const std::string& directory) {
        const std::size_t slash = directory.rfind('/');
        const std::string above = directory.substr(0, slash);
        if (!above.empty() && is_package(directory) && is_package(above))
            return package_of(above) + directory.substr(slash + 1) + ".";
        static constexpr std::string_view kProbe = "probe";
        const std::string name =
            parts_.module_name(directory + "/" + std::string(kProbe) + ".py", root_of(directory));
        return name.substr(0, name.size() - std::min(name.size(), kProbe.size()));
    }

    const std::string* walked_root(const std::string& directory) const {
        for (const std::string& root : found_.roots)
            if (directory == root || directory.starts_with(root == "/" ? root : root + "/")) return &root;
        return nullptr;
    }

    // The nearest directory above every named file, so that a/train.py and b/train.py have two names, as they have
    // when their directory is walked.
    std::string above_named_files() const {
        std::string above;
        for (const FoundFile& file : found_.python) {
            const std::string directory = file.path.substr(0, file.path.rfind('/'));
            if (walked_root(directory)) continue;
            if (above.empty()) above = directory;
            while (!above.empty() && !(directory + "/").starts_with(above + "/"))
                above.resize(above.rfind('/'));
        }
        return above;
    }

    std::string root_of(const std::string& directory) const {
        const std::string* root = walked_root(directory);
        return root ? *root : above_named_.empty() ? directory : above_named_;
    }

    const Discovered& found_;
    const FrontEnds& parts_;
    std::string above_named_;
    std::unordered_map<std::string, std::string> packages_;
    std::unordered_map<std::string, bool> is_package_;
};

void add_python(Plan& plan, const Discovered& found, const FrontEnds& parts) {
    if (!parts.extract_python) return;
    ModuleNames names(found, parts);
    plan.python.reserve(found.python.size());
    for (const FoundFile& f : found.python)
        plan.python.push_back({.path = f.path, .module = names.of(f.path), .id = f.id});
}

bool needs_command(const std::string& path) { return !is_python(path) && !is_configuration(path); }

bool has_cpp(const Discovered& found) {
    return !found.sources.empty() || !found.headers.empty() ||
           std::any_of(found.named.begin(), found.named.end(), needs_command);
}

}  // namespace

std::string start_directory(const LintOptions& options) {
    if (options.inputs.empty()) return options.working_directory;
    const std::string first = absolute_path(options.inputs.front(), options.working_directory);
    return is_file(first) ? fs::path(first).parent_path().string() : first;
}

bool is_excluded(const LintOptions& options, const std::string& path) {
    const std::string relative = relative_path(path, options.config_directory);
    if (relative.starts_with('/')) return false;
    return std::any_of(options.exclude.begin(), options.exclude.end(),
                       [&](const std::string& pattern) { return path_matches(pattern, relative); });
}

std::vector<std::string> absent_submodules(const std::string& project_root) {
    std::vector<std::string> absent;
    std::ifstream file(project_root + "/.gitmodules");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string key, equals, path;
        if (!(words >> key >> equals >> path) || key != "path" || equals != "=") continue;
        std::error_code failed;
        const bool filled = !fs::is_empty(project_root + "/" + path, failed) && !failed;
        if (!filled) absent.push_back(path);
    }
    return absent;
}

Result<Plan> make_plan(const LintOptions& options, const FrontEnds& parts) {
    Plan plan;
    std::vector<std::string> inputs = options.inputs;
    if (inputs.empty()) inputs.push_back(options.working_directory);
    const Result<Discovered> found = discover(
        inputs, options.working_directory, [&](const std::string& p) { return is_excluded(options, p); },
        options.jobs.value_or(available_jobs()));
    if (!found) return found.error();
    const Result<std::shared_ptr<Commands>> database = open_database(options, parts, has_cpp(*found), plan);
    if (!database) return database.error();

    const auto flags = options.flags.value_or(std::vector<std::string>{});
    plan.fallback = [commands = *database, flags, parts](const std::string& path) {
        const auto near = commands ? commands->neighbour(path) : std::nullopt;
        return near ? *near : parts.default_command(path, flags);
    };
    plan.named = found->named;
    plan.headers = found->headers;
    for (const std::string& path : found->named) {
        if (needs_command(path)) add_units(plan, *database, path);
    }
    for (const std::string& path : found->sources) add_units(plan, *database, path);
    add_python(plan, *found, parts);

    plan.project_root = find_root(start_directory(options));
    plan.is_whole = has_all_of(plan.project_root, inputs, options);
    if (plan.is_whole) plan.texts = found->texts;
    plan.is_package = plan.is_whole && is_installable(plan.project_root);
    plan.torch = parse_torch_version(options.torch).value_or(TorchVersion{});
    const std::string root = plan.project_root.empty() ? start_directory(options) : plan.project_root;
    if (options.torch.empty()) plan.torch = pinned_version(root, "torch");
    plan.transformers = pinned_version(root, "transformers");
    for (const CompileCommand& c : plan.commands) {
        // Facts of a file outside the root would be dropped as foreign code.
        const bool inside = !relative_path(c.file, plan.project_root).starts_with('/');
        if (!inside && !plan.project_root.empty()) plan.project_root.clear();
    }
    if (plan.commands.empty() && plan.headers.empty() && plan.python.empty()) {
        return Error{
            "nothing to analyse: no .py, .ipynb, .cpp, .cc, .cxx, .cu or header file in " + inputs.front(),
            "name files, or a directory with sources"};
    }
    return plan;
}

}  // namespace mp::lint
