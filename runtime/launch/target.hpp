#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch {

// Exit statuses of a launcher that could not start its program, as in env(1) and timeout(1).
inline constexpr int kPreflightFailed = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

// The path of a command. `status` is 0, or the exit status to use when it was not found.
struct Found {
    std::string path;
    int status = 0;
    Error error;
};

// Like execvp: a name with a slash is a path. Any other name is searched in PATH (`/bin:/usr/bin` when
// unset), where an empty entry means the working directory.
Found find_command(std::string_view name, const char* path_variable);

// The effect of LD_PRELOAD on the program.
enum class Traceable {
    yes,
    children_only,  // static: ld.so never runs, but child processes are traced
    no,             // ld.so would ignore the preload or print an error: the environment must not change
};

// The kind of a command, read from its first bytes. Nothing is run.
struct Target {
    std::string path;
    Traceable traceable = Traceable::yes;
    std::string reason;   // unless `yes`: "setuid", "statically linked", ...
    std::string python;   // the Python that will run, in a form that execvp finds; empty: none is known
    std::string program;  // the ELF file that will run; empty: unknown (a shim called python)
};

// Follows "#!" lines (at most four, like Linux) and `env`. A script whose interpreter does not exist counts
// as not found, as with execve.
struct Inspected {
    Target target;
    int status = 0;
    Error error;
};
Inspected inspect(const std::string& path, const Variables&);

// "python", "python3", "python3.11", "python3.13t", "python3-dbg".
bool is_python_name(std::string_view file_name);

// The interpreter and its single argument, split like the kernel splits a "#!" line; empty: none.
std::vector<std::string> shebang_of(std::string_view first_bytes);
// The program that `env` would run with these arguments; empty: none. Handles -S, -i, -u NAME, NAME=value.
std::string program_of_env(std::vector<std::string> arguments);

// The words of a command line that may be the program with torch, in order, argv[0] first. After a launcher
// that only starts other programs (mpirun, srun, env, numactl, taskset ...), the first word that is a
// Python, a script or a program of its own.
std::vector<std::string> torch_candidates(const std::vector<std::string>& command);

}  // namespace mp::launch
