#pragma once

#include <functional>
#include <string>

#include "kernels/base/result.hpp"
#include "runtime/launch/torch_finder.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch {

// What is said while a build runs: a line for a log, or the state of the one line of a terminal.
struct Progress {
    std::function<void(const std::string&)> line;   // may be empty
    std::function<void(const std::string&)> state;  // may be empty: no terminal
};

struct AdapterBuild {
    std::string sources;  // holds instrument/torch
    std::string measure;  // libmp_measure.a
    std::string out;      // where the library goes; locks and the temporary build are there too
    bool force = false;   // build even when an up-to-date one is there
    Variables variables;  // what cmake and the compiler see
    Progress progress;
};

// Makes `out`/libmptrace_torch_<id>.so for a torch, by the sub-build of instrument/torch, and returns its path.
// One process builds, the others (ranks that start together) wait for it and take its result, a failure too.
// The library appears by rename: there is never half of one. The Error of a failed build is one line; its hint
// is the end of the compiler's output.
Result<std::string> build_adapter(const Torch&, const AdapterBuild&);

// True when the adapter in `directory` was built by build_adapter from other sources than these: after an
// update of mp-trace it must be built anew. Adapters that came with mp-trace are never outdated.
bool is_outdated(const std::string& directory, const std::string& id, const std::string& sources);

// A number over the names and contents of all sources of the adapter, as hex; empty: there are none.
std::string fingerprint_of(const std::string& sources);

// The end of a build's output that says most: from the first error on, at most `lines` lines.
std::string telling_lines(const std::string& output, std::size_t lines);

// `mp-trace build-adapter`.
struct BuildAdapterRequest {
    std::string torch;   // --torch DIR
    std::string python;  // --python EXE; both empty: python3 on PATH
    std::string out;     // --out DIR; empty: the cache
    bool force = false;
    bool quiet = false;
};
// Prints the path of the library on stdout. 0: it is there; 1: it could not be built; 2: there is no such torch.
int run_build_adapter(const BuildAdapterRequest&);

}  // namespace mp::launch
