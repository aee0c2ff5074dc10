#pragma once

// The libTooling front end: one source file and its command line in, facts out. The only room that
// knows clang; this header does not, so callers compile without it.

#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// One entry of a compilation database, or what stands in for it.
struct CompileCommand {
    std::string file = {};                    // as given
    std::string directory = {};               // relative paths of the command are relative to it
    std::vector<std::string> arguments = {};  // with the compiler first; nvcc's own spelling is welcome
};

// Which CUDA headers .cu files (and C++ files that include them) are read with.
enum class CudaHeaders : std::uint8_t { automatic, toolkit, stubs };

// Which PyTorch headers: those the build finds, else ours; or ours though others are installed.
enum class TorchHeaders : std::uint8_t { automatic, stubs };

struct ExtractOptions {
    CudaHeaders cuda = CudaHeaders::automatic;
    TorchHeaders torch = TorchHeaders::automatic;
    std::string cuda_path = {};     // of the toolkit; empty: CUDA_PATH, CUDA_HOME, /usr/local/cuda
    bool exact = false;             // also parse function bodies of system headers
    std::string project_root = {};  // files below it are user code; empty: everything not a system header
    std::vector<std::string> extra_args = {};  // appended to every command line
};

// What clang will really be given: after response files, nvcc translation and our own additions.
struct Invocation {
    std::string file;
    std::string directory;
    Language language = Language::cpp;
    std::vector<std::string> host;           // clang driver arguments of the host pass, compiler first
    std::vector<std::string> device;         // of the device pass, empty for C++; run only when it is needed
    std::vector<std::string> flags;          // numerics flags recorded, not forwarded ("--use_fast_math")
    std::vector<std::string> architectures;  // every sm_NN or compute_NN the command names
    std::string headers;                     // as Unit::headers
    std::vector<std::string> warnings;       // "@missing.rsp: cannot be read", dropped -fplugin=
};

// Translates a command. Never fails: what it does not understand is dropped and named in `warnings`.
Invocation make_invocation(const CompileCommand&, const ExtractOptions&);

// Runs the passes and gives the facts. Never throws and never exits: a unit that does not parse has
// state `partial` or `failed` and says why in Coverage. Not crash-safe: callers isolate it in a process.
Unit extract(const Invocation&, const ExtractOptions&);

// Compilation databases. `find` looks for compile_commands.json in `start` and its parents, then in
// `build` and `build/*` below each.
struct CompileDatabase {
    std::string path;
    std::vector<CompileCommand> commands;

    static Result<CompileDatabase> load(const std::string& path_or_directory);
    static std::string find(const std::string& start);
};

// The command used when there is no database: C++20 or CUDA by extension, with the file's own
// directory and the project's usual include roots.
CompileCommand default_command(const std::string& file, const std::vector<std::string>& flags_after_dashes);

// Everything besides sources and flags that changes facts: clang version, our headers' content hash.
std::string extractor_version();

}  // namespace mp::lint
