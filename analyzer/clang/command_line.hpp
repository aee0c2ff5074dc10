#pragma once

// Extracts from a build's command the options that decide the meaning of a source. All others are dropped:
// output, plugins, code, and files that are not source text.

#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

// Results of a translation beside the options.
struct CommandNotes {
    std::vector<std::string> flags;          // as Invocation::flags
    std::vector<std::string> architectures;  // as Invocation::architectures
    std::vector<std::string> warnings;       // as Invocation::warnings

    void warn(std::string text);  // adds each text once
};

// Splits a command into words as a POSIX shell does. Quotes and backslashes are removed; nothing is
// expanded or run.
std::vector<std::string> split_command(std::string_view command);

// Replaces @file, -optf file and --options-file file by the words in the file, also nested, relative to
// `directory`. The last two are options of nvcc.
std::vector<std::string> expand_response_files(const std::vector<std::string>& arguments,
                                               const std::string& directory, bool is_nvcc, CommandNotes&);

}  // namespace mp::lint
