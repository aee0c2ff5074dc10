#pragma once

#include <functional>
#include <string>

#include "kernels/base/result.hpp"
#include "runtime/launch/torch_finder.hpp"
#include "runtime/launch/variables.hpp"

namespace mp::launch {

// Output during a build: a line for a log, or the state in a line of a terminal that is rewritten.
struct Progress {
    std::function<void(const std::string&)> line;   // may be empty
    std::function<void(const std::string&)> state;  // may be empty: no terminal
};

struct AdapterBuild {
    std::string sources;  // the directory that contains instrument/torch
    std::string measure;  // libmp_measure.a
    std::string out;      // directory of the library, the lock and the temporary build
    bool force = false;   // build even when an up-to-date library exists
    Variables variables;  // environment of cmake and the compiler
    Progress progress;
};

// Builds `out`/libmptrace_torch_<id>.so for a torch, by the sub-build of instrument/torch, and returns its
// path. One process builds; others (ranks that start together) wait and use its result, also when it
// failed. The library appears by rename, so it is always complete. The Error of a failed build is one line;
// its hint is the end of the compiler's output.
Result<std::string> build_adapter(const Torch&, const AdapterBuild&);

// True when build_adapter built the adapter in `directory` from other sources than these. After an update
// of mp-trace such an adapter must be built again. Adapters that are installed with mp-trace are never
// outdated.
bool is_outdated(const std::string& directory, const std::string& id, const std::string& sources);

// A hash of the names and contents of all sources of the adapter, as hex; empty: there are none.
std::string fingerprint_of(const std::string& sources);

// The most useful part of a build's output: from the first error on, at most `lines` lines.
std::string telling_lines(const std::string& output, std::size_t lines);

// `mp-trace build-adapter`.
struct BuildAdapterRequest {
    std::string torch;   // --torch DIR
    std::string python;  // --python EXE; both empty: python3 on PATH
    std::string out;     // --out DIR; empty: the cache
    bool force = false;
    bool quiet = false;
};
// Prints the path of the library on stdout. Returns 0 when it exists, 1 when it could not be built, 2 when
// there is no such torch.
int run_build_adapter(const BuildAdapterRequest&);

}  // namespace mp::launch
