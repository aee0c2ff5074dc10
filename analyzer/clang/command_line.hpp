#pragma once

// From a build's command to the options that decide what a source means. Nothing else gets through:
// no output, no plugin, no code, no file that is not source text.

#include <string>
#include <string_view>
#include <vector>

namespace mp::lint {

// What a translation leaves behind besides options.
struct CommandNotes {
    std::vector<std::string> flags;          // as Invocation::flags
    std::vector<std::string> architectures;  // as Invocation::architectures
    std::vector<std::string> warnings;       // as Invocation::warnings

    void warn(std::string text);  // each text once
};

// Words of a command as a POSIX shell would split them, with quotes and backslashes undone and nothing
// expanded or run.
std::vector<std::string> split_command(std::string_view command);

// Replaces @file, -optf file and --options-file file by the words in the file, nested too, relative to
// `directory`. The last two are nvcc's.
std::vector<std::string> expand_response_files(const std::vector<std::string>& arguments,
                                               const std::string& directory, bool is_nvcc, CommandNotes&);

}  // namespace mp::lint
