#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/trace/identity.hpp"

namespace mp::launch {

inline constexpr std::string_view kPreloadName = "libmptrace_preload.so";
inline constexpr std::string_view kShimPlace = "lib/mp-trace/python";

// Where our own parts are. The installed tree and the build tree are alike, so PREFIX is always the
// directory above that of the executable.
struct Layout {
    std::string tool;      // the executable itself
    std::string preload;   // PREFIX/lib/mp-trace/libmptrace_preload.so
    std::string shim;      // PREFIX/lib/mp-trace/python
    std::string adapters;  // PREFIX/lib/mp-trace/adapters
    std::string measure;   // PREFIX/lib/mp-trace/libmp_measure.a, which adapters are linked with
    std::string sources;   // PREFIX/share/mp-trace/src, or the checkout that this was built from
};

Layout layout_of(std::string_view executable);
// Of the running mp-trace.
Result<Layout> own_layout();

// ${XDG_CACHE_HOME:-$HOME/.cache}/mp-trace/adapters; empty when neither is an absolute path.
std::string adapter_cache(const trace::Environment&);

// The file that the preload looks for.
std::string adapter_file(std::string_view id);
// The first of `directories` that holds it, as a path; empty: none does.
std::string find_adapter(const std::vector<std::string>& directories, std::string_view id);

// `path` below `base` unless it is absolute. Nothing is resolved.
std::string absolute(std::string_view path, std::string_view base);
std::string parent_of(std::string_view path);

}  // namespace mp::launch
