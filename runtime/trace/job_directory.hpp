#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/trace/identity.hpp"

namespace mp::trace {

// The directory for the recording of a process, below the run directory. One command may start several jobs (a sweep,
// a shell script): the first one records into the run directory itself, later ones into job.2, job.3 ... below it.
//
// Ranks of one launch share a directory. A rank that is already taken in it belongs to the next launch, unless the
// launcher counts restarts. A process without a rank is a job by itself. The files `job` (which launch owns the
// directory) and `r0.c0` (a rank is taken) are symbolic links, because their text appears at once. Where links cannot
// be made, all processes share the run directory.
std::string job_directory(const std::string& run_directory, const Identity&);

// The directories below the run directory that hold recordings of these processes of this machine.
std::vector<std::string> directories_of(const std::string& run_directory,
                                        const std::vector<std::int64_t>& pids);

// Whether this caller is the first to ask: a worker may print its summary while the pool's process, which ends it, does
// the same. Leaves the symbolic link `summary`; true as well where links cannot be made.
bool claim_summary(const std::string& directory);

}  // namespace mp::trace
