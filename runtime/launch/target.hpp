#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch {

// Exit statuses of a launcher that could not start its program, as env(1) and timeout(1) have them.
inline constexpr int kPreflightFailed = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

// Where a command is. `status` is 0, or the exit status that says why there is none.
struct Found {
    std::string path;
    int status = 0;
    Error error;
};

// As execvp: a name with a slash is a path, any other is looked up in PATH (`/bin:/usr/bin` when unset), in
// which an empty entry is the working directory.
Found find_command(std::string_view name, const char* path_variable);

// What will become of LD_PRELOAD in the program.
enum class Traceable {
    yes,
    children_only,  // static: ld.so never runs, but what the program starts is traced
    no,             // ld.so would drop the preload or complain: the environment must stay untouched
};

// What a command is, from its first bytes. Nothing is run.
struct Target {
    std::string path;
    Traceable traceable = Traceable::yes;
    std::string reason;   // when it is not `yes`: "setuid", "statically linked", ...
    std::string python;   // the Python that will run, as something execvp finds; empty: none that we can see
    std::string program;  // the ELF file that will run; empty: unknown (a shim called python)
};

// Follows "#!" lines (at most four, as Linux does) and `env`. A script whose interpreter does not exist is
// not found, as execve says.
struct Inspected {
    Target target;
    int status = 0;
    Error error;
};
Inspected inspect(const std::string& path, const Variables&);

// "python", "python3", "python3.11", "python3.13t", "python3-dbg".
bool is_python_name(std::string_view file_name);

// The interpreter and its one argument, as the kernel splits a "#!" line; empty: none.
std::vector<std::string> shebang_of(std::string_view first_bytes);
// The program that `env` would run with these arguments; empty: none. Handles -S, -i, -u NAME, NAME=value.
std::string program_of_env(std::vector<std::string> arguments);

// Which word of a command line is the one whose torch matters: behind a launcher that only starts others
// (mpirun, srun, env, numactl, taskset ...), the first that is a Python or a script or program of its own.
// Candidates in order, argv[0] first.
std::vector<std::string> torch_candidates(const std::vector<std::string>& command);

}  // namespace mp::launch
