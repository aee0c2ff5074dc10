#pragma once

#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/target.hpp"
#include "runtime/launch/variables.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {

// `mp-trace run`, as the command line says it.
struct RunRequest {
    std::vector<std::string> command;  // argv of the program
    std::string output;                // -o, a pattern; empty: default_run_directory
    trace::Mode mode = trace::Mode::watch;
    trace::StepRange steps;
    std::vector<trace::RankRange> ranks;
    std::uint64_t budget = trace::Options().budget;
    std::string save_twin;  // patterns
    std::string save_real;
    std::vector<std::string> adapters;  // --adapters, searched first
    bool eager = false;
    bool free_ints = false;
    bool quiet = false;
    bool build = true;  // build a missing adapter before the program starts
};

// What the process is and where it stands, read once.
struct Surroundings {
    Variables variables{{}};
    trace::Identity identity;
    std::int64_t parent_pid = 0;
    std::int64_t unix_seconds = 0;
    std::string working_directory;
    Layout layout;
};

// The two patterns of a request, checked and made absolute; run_dir of the result is the directory that is
// wanted. Nothing is touched. An unknown key, an unset variable, a twin to be saved in a mode without one, a
// directory to save into that is not there: an Error.
Result<trace::Options> options_of(const RunRequest&, const Surroundings&);

// The program's environment: what the preload and the shim need, everything else as it was.
Result<Variables> environment_of(const Surroundings&, const std::string& options_file);

// Whether this process need not be traced at all: a rank that --ranks leaves out, in a mode in which ranks do
// not depend on one another. Twin modes run their twin on every rank, because it takes part in collectives.
bool is_left_out(const RunRequest&, const trace::Identity&);

// "fp32 twin from step 0 → mp-trace.1763/"
std::string start_line(const trace::Options&, const std::string& run_directory,
                       const std::string& working_directory);

// Prepares everything and becomes the program: same pid, terminal, standard streams and signals. Comes back
// only when the program could not be started, with the exit status 125 (our preparation), 126 (not executable)
// or 127 (not found); then nothing has run and nothing is left behind.
int run(const RunRequest&);

}  // namespace mp::launch
