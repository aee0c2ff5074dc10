#pragma once

// What the words of mp-lint's command line do. Each gives the exit code of the process, and has then
// said why on standard error.

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/adopt/adopt.hpp"
#include "analyzer/driver/lint.hpp"
#include "analyzer/driver/output.hpp"

namespace mp::lint {

inline constexpr int kClean = 0;
inline constexpr int kUsage = 2;

struct CommandLine {
    LintOptions lint;
    AdoptOptions adopt;
    std::vector<Output> outputs;
    std::vector<std::string> given;  // options, by their long names
    std::string config;
    std::string color = "auto";
    bool isolated = false;
    bool strict = false;
    bool exit_zero = false;
    bool verbose = false;
    bool quiet = false;
    bool notes = false;
    bool stats = false;
    bool help = false;
    bool version = false;
    bool show_command = false;
};

void say(std::string_view kind, const std::string& text);  // "mp-lint: warning: text"
int fail(const Error&);
bool print(std::string_view text);  // false when it could not be written, which is said

int lint_sources(CommandLine&, const FrontEnds&);
// `words`: "make" and the file.
int baseline(const std::vector<std::string>& words, const CommandLine&, const FrontEnds&);
int policy(const std::vector<std::string>& words);
int print_facts_of(const LintOptions&, const FrontEnds&);
int print_rules();
int print_rule(const std::vector<std::string>& words);
int print_version(const CommandLine&, const FrontEnds&);

}  // namespace mp::lint
