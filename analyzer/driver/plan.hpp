#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/front_ends.hpp"
#include "analyzer/driver/options.hpp"
#include "kernels/numerics/torch_policies.hpp"

namespace mp::lint {

struct PythonFile {
    std::string path;
    std::string module;  // "pkg.train"
    FileId id;           // at the time of discovery
};

// What to analyse: one command per unit. A file that the database builds several times is several
// units.
struct Plan {
    std::vector<CompileCommand> commands;  // their `file` is absolute
    std::vector<std::string> headers;      // found in directories: analysed if no unit includes them
    std::vector<std::string>
        named;  // files that the user named; the configuration's `exclude` does not apply to them
    std::vector<PythonFile> python;  // needs no command
    std::vector<std::string> warnings;
    std::string project_root;      // nearest parent of the first input that contains .git; may be empty
    bool is_whole = false;         // the inputs have all files of the project
    std::vector<FoundFile> texts;  // of a whole project: scripts, configurations and documents
    bool is_package = false;       // the project can be installed
    std::string database;          // the one in use; empty: none
    TorchVersion torch;         // that the user, or else the program's requirements ask for; may be unknown
    TorchVersion transformers;  // that the program's requirements ask for; may be unknown

    // The command for a file that is not in the database: the command of a neighbour, else the default.
    std::function<CompileCommand(const std::string&)> fallback;

    bool has_native_code() const { return !commands.empty() || !headers.empty(); }
};

// The directory of the first input, where the search for configuration and database starts.
std::string start_directory(const LintOptions& options);

Result<Plan> make_plan(const LintOptions& options, const FrontEnds& parts);

// Paths of the submodules in .gitmodules whose directories are empty or absent, as written there.
std::vector<std::string> absent_submodules(const std::string& project_root);

// Whether the configuration excludes the file.
bool is_excluded(const LintOptions& options, const std::string& path);

}  // namespace mp::lint
