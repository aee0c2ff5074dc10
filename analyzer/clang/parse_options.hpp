#pragma once

// Selects the options of a clang or gcc command that decide how a source parses. An allow-list over clang's
// own option table, so that a value is never mistaken for an option.

#include <string>
#include <vector>

#include "analyzer/clang/command_line.hpp"

namespace mp::lint {

struct ParseOptions {
    std::vector<std::string> arguments;     // safe to pass to clang, include directories absolute
    std::vector<std::string> include_dirs;  // those among the arguments, absolute
    std::string language;                   // value of -x; empty when absent
};

// Options that load or run code, or write files, are dropped with a warning in the notes. Options for code
// generation, warnings, dependencies and linking are dropped silently, because they do not change facts.
ParseOptions parse_options(const std::vector<std::string>& arguments, const std::string& directory,
                           CommandNotes&);

}  // namespace mp::lint
