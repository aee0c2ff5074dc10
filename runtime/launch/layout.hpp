#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/identity.hpp"

namespace mp::launch {

inline constexpr std::string_view kPreloadName = "libmptrace_preload.so";
inline constexpr std::string_view kCudaName = "libmptrace_cuda.so";
inline constexpr std::string_view kShimPlace = "lib/mp-trace/python";

// Paths of our own files. The installed tree and the build tree have the same structure, so PREFIX is
// always the parent of the executable's directory.
struct Layout {
    std::string tool;      // the executable itself
    std::string lint;      // PREFIX/bin/mp-lint
    std::string preload;   // PREFIX/lib/mp-trace/libmptrace_preload.so
    std::string cuda;      // PREFIX/lib/mp-trace/libmptrace_cuda.so; a build with sanitizers has none
    std::string shim;      // PREFIX/lib/mp-trace/python
    std::string adapters;  // PREFIX/lib/mp-trace/adapters
    std::string measure;   // PREFIX/lib/mp-trace/libmp_measure.a, with which adapters are linked
    std::string sources;   // PREFIX/share/mp-trace/src, or the checkout of this build
};

Layout layout_of(std::string_view executable);
// The layout of the running mp-trace.
Result<Layout> own_layout();

// ${XDG_CACHE_HOME:-$HOME/.cache}/mp-trace/adapters; empty when neither is an absolute path.
std::string adapter_cache(const trace::Environment&);

// The file name that the preload looks for.
std::string adapter_file(std::string_view id);
// The library of mp_optim's ops, which is built with the adapter.
std::string optimizer_file(std::string_view id);
// The path in the first of `directories` that contains it; empty: none does.
std::string find_adapter(const std::vector<std::string>& directories, std::string_view id);

// `path` below `base`, unless `path` is absolute. Symbolic links are not resolved.
std::string absolute(std::string_view path, std::string_view base);
std::string parent_of(std::string_view path);

}  // namespace mp::launch
