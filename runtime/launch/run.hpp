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

// The options of `mp-trace run`.
struct RunRequest {
    std::vector<std::string> command;  // argv of the program
    std::string output;                // -o, a pattern; empty: default_run_directory
    trace::Mode mode = trace::Mode::watch;
    trace::StepRange steps;
    std::vector<trace::RankRange> ranks;
    std::uint64_t budget = trace::Options().budget;
    double overhead = 0;
    std::string save_twin;  // patterns
    std::string save_real;
    std::string step_range;
    std::vector<std::string> adapters;  // --adapters, searched first
    bool eager = false;
    bool device_times = false;
    bool free_ints = false;
    bool twin_noise = false;
    bool quiet = false;
    bool build = true;  // build a missing adapter before the program starts
};

// The environment and identity of the process, read once.
struct Surroundings {
    Variables variables{{}};
    trace::Identity identity;
    std::int64_t parent_pid = 0;
    std::int64_t unix_seconds = 0;
    std::string working_directory;
    Layout layout;
};

// Checks the two patterns of a request and makes them absolute; run_dir of the result is the wanted
// directory. Nothing is created. Errors: an unknown key, an unset variable, a twin to save in a mode
// without a twin, a missing directory to save into.
Result<trace::Options> options_of(const RunRequest&, const Surroundings&);

// The program's environment: adds what the preload and the shim need, and changes nothing else.
Result<Variables> environment_of(const Surroundings&, const std::string& options_file);

// Whether this process need not be traced: --ranks leaves out its rank, and in this mode ranks do not
// depend on one another. Twin modes run the twin on every rank, because it takes part in collectives.
bool is_left_out(const RunRequest&, const trace::Identity&);

// "fp32 twin from step 0 → mp-trace.1763/"
std::string start_line(const trace::Options&, const std::string& run_directory,
                       const std::string& working_directory);

// Prepares everything and becomes the program: same pid, terminal, standard streams and signals. Returns
// only when the program could not be started, with exit status 125 (our preparation failed), 126 (not
// executable) or 127 (not found). Then nothing has run, and no file is left behind.
int run(const RunRequest&);

}  // namespace mp::launch
