#pragma once

// The libTooling front end: takes one source file and its command line, returns facts. Only this room uses
// clang. This header does not include clang, so callers compile without it.

#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

// One entry of a compilation database, or a default command.
struct CompileCommand {
    std::string file = {};                    // as given
    std::string directory = {};               // relative paths of the command are relative to it
    std::vector<std::string> arguments = {};  // the compiler first; options of nvcc are accepted
};

// The CUDA headers for .cu files and the C++ files that include them.
enum class CudaHeaders : std::uint8_t { automatic, toolkit, stubs };

// The PyTorch headers: `automatic` uses those that the build finds, else ours; `stubs` always uses ours;
// `directory` uses those in ExtractOptions::torch_path.
enum class TorchHeaders : std::uint8_t { automatic, stubs, directory };

struct ExtractOptions {
    CudaHeaders cuda = CudaHeaders::automatic;
    TorchHeaders torch = TorchHeaders::automatic;
    std::string cuda_path = {};     // of the toolkit; empty: CUDA_PATH, CUDA_HOME, /usr/local/cuda
    std::string torch_path = {};    // of libtorch, its include directory, or a site-packages with torch
    bool exact = false;             // also parse function bodies of system headers
    std::string project_root = {};  // files below it are user code; empty: every file that is not a system
                                    // header
    std::vector<std::string> extra_args = {};  // appended to every command line
};

// The final clang command: after response files, nvcc translation and our own additions.
struct Invocation {
    std::string file;
    std::string directory;
    Language language = Language::cpp;
    std::vector<std::string> host;           // clang driver arguments of the host pass, compiler first
    std::vector<std::string> device;         // arguments of the device pass; empty for C++; run only when
                                             // needed
    std::vector<std::string> flags;          // numerics flags: recorded, not passed to clang
                                             // ("--use_fast_math")
    std::vector<std::string> architectures;  // every sm_NN or compute_NN in the command
    std::string headers;                     // as Unit::headers
    std::vector<std::string> warnings;       // "@missing.rsp: cannot be read", dropped -fplugin=
    std::vector<std::string> installed;      // directories of the toolkit and the libtorch in use, if any
    // The same command with our headers in place of those, unless the user chose them: at most one. It is
    // run when this one does not parse cleanly.
    std::vector<Invocation> with_our_headers;
};

// Translates a command. Never fails: unknown options are dropped and named in `warnings`.
Invocation make_invocation(const CompileCommand&, const ExtractOptions&);

// Runs the passes and returns the facts; runs them again with our headers if the installed ones are incomplete
// or too old for the code, and returns the cleaner unit. Never throws and never exits: a unit that does not parse has
// state `partial` or `failed`, and Coverage contains the reasons. clang may still crash, so callers run this in a
// separate process.
Unit extract(const Invocation&, const ExtractOptions&);

// Compilation databases. `find` searches `start` and its parents for compile_commands.json, then `build`
// and `build/*` below each of them.
struct CompileDatabase {
    std::string path;
    std::vector<CompileCommand> commands;

    static Result<CompileDatabase> load(const std::string& path_or_directory);
    static std::string find(const std::string& start);
};

// The command when there is no database: C++20, or CUDA by the file's extension, with the file's own
// directory and the usual include directories of the project. A header with kernels is CUDA.
CompileCommand default_command(const std::string& file, const std::vector<std::string>& flags_after_dashes);

// Everything that changes facts beside sources and flags: clang's version and the content hash of our
// headers.
std::string extractor_version();

}  // namespace mp::lint
