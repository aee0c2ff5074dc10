#pragma once

// Which options of a clang or gcc command decide how a source parses: an allow-list over clang's own
// option table, so that values are never mistaken for options.

#include <string>
#include <vector>

#include "analyzer/clang/command_line.hpp"

namespace mp::lint {

struct ParseOptions {
    std::vector<std::string> arguments;     // safe to give to clang, include directories absolute
    std::vector<std::string> include_dirs;  // of them, absolute
    std::string language;                   // value of -x, empty when there is none
};

// Options that load or run code, or write files, are dropped and named in the notes; options for code
// generation, warnings, dependencies and linking are dropped without a word, for they change no fact.
ParseOptions parse_options(const std::vector<std::string>& arguments, const std::string& directory,
                           CommandNotes&);

}  // namespace mp::lint
