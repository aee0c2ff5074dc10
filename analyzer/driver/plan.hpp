#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/front_ends.hpp"
#include "analyzer/driver/options.hpp"

namespace mp::lint {

struct PythonFile {
    std::string path;
    std::string module;  // "pkg.train"
    FileId id;           // when it was found
};

// What to analyse: one command per unit. A file that the database builds several times is several
// units.
struct Plan {
    std::vector<CompileCommand> commands;  // their `file` is absolute
    std::vector<std::string> headers;      // found in directories: analysed if no unit includes them
    std::vector<std::string> named;        // files the user named: the configuration's `exclude` spares them
    std::vector<PythonFile> python;        // needs no command
    std::vector<std::string> warnings;
    std::string project_root;  // nearest parent of the first input with .git; may be empty
    std::string database;      // the one in use; empty: none

    // The command for a file that no database names: a neighbour's from the database, else the
    // default.
    std::function<CompileCommand(const std::string&)> fallback;
};

// Where configuration and database are looked for: the directory of the first input.
std::string start_directory(const LintOptions& options);

Result<Plan> make_plan(const LintOptions& options, const FrontEnds& parts);

// Is the file left out by the configuration?
bool is_excluded(const LintOptions& options, const std::string& path);

}  // namespace mp::lint
