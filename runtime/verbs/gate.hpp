#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/base/result.hpp"

namespace mp::trace {

// `mp-trace gate`, without the command line.
struct GateRequest {
    std::string directory;
    std::string rules;  // empty: mp-gate.toml in the working directory, if it exists
    std::string noise;  // the same training with --twin-noise; empty: none
    std::vector<std::string> lint;
    std::vector<std::string> policies;
    std::vector<std::string> outputs;  // "junit=gate.xml", "text"; empty: text
    bool strict = false;
    bool color = false;  // for text on standard output
};

struct GateRun {
    int exit = 0;                                            // exit_code()
    std::vector<std::pair<std::string, std::string>> texts;  // file (empty: standard output), content
};

// An error is for the user to fix: a rule file, an option, a missing directory.
Result<GateRun> run_gate(const GateRequest&);

}  // namespace mp::trace
