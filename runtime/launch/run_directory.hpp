#pragma once

#include <string>

#include "kernels/base/result.hpp"
#include "runtime/trace/identity.hpp"
#include "runtime/trace/options.hpp"

namespace mp::launch {

// The default pattern of the directory's name: "mp-trace.%p". Inside a launcher all ranks must get the same
// name: "mp-trace.%j", or, if the job has no id, the pid of the launcher.
std::string default_run_directory(const trace::Identity&, std::int64_t parent_pid);

struct RunDirectory {
    std::string path;      // absolute
    bool created = false;  // by this process
};

// Whether make_run_directory will probably succeed. Checked before minutes are spent on building an
// adapter.
Status check_run_directory(const std::string& wanted, bool shared);

// Creates `wanted` (absolute) with mode 0700. An existing empty directory is used. If it is not empty: with
// `shared` (ranks inside a launcher) it is joined, otherwise ".2", ".3" ... is created beside it. Nothing
// is overwritten. Never follows a symbolic link at the last component, and never joins a directory of
// another user.
Result<RunDirectory> make_run_directory(const std::string& wanted, bool shared);

// Writes `options.<host>.<pid>` (".2" and so on if the name is taken), mode 0600, and returns its path.
// Leaves no file behind on failure.
Result<std::string> write_options_file(const std::string& directory, const trace::Identity&,
                                       const trace::Options&);

// Removes what the two functions above created, unless it has been used.
void remove_run(const RunDirectory&, const std::string& options_file);

}  // namespace mp::launch
