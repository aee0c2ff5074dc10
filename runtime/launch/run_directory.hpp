#pragma once

#include <string>

#include "kernels/base/result.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {

// The directory's name when -o gives none: a pattern, "mp-trace.%p". Inside a launcher all ranks must come to
// the same one: "mp-trace.%j", or, where the job has no id, the number of the launcher's process.
std::string default_run_directory(const trace::Identity&, std::int64_t parent_pid);

struct RunDirectory {
    std::string path;      // absolute
    bool created = false;  // by this process
};

// Whether make_run_directory can be expected to work: said before minutes go into building an adapter.
Status check_run_directory(const std::string& wanted, bool shared);

// Makes `wanted` (absolute), mode 0700. One that exists and is empty is taken. Otherwise, with `shared` (ranks
// inside a launcher) it is joined, and without, ".2", ".3" ... is made beside it: nothing is overwritten.
// Never follows a symbolic link at the last name and never joins a directory of somebody else.
Result<RunDirectory> make_run_directory(const std::string& wanted, bool shared);

// Writes `options.<host>.<pid>` (a taken name gets ".2" and so on), mode 0600, and returns its path. On failure
// nothing is left of it.
Result<std::string> write_options_file(const std::string& directory, const trace::Identity&,
                                       const trace::Options&);

// Takes back what the two above made, as far as nobody has used it.
void remove_run(const RunDirectory&, const std::string& options_file);

}  // namespace mp::launch
