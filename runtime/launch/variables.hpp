#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mp::launch {

// The environment of a program to start: "NAME=value" in the original order, in the form for execve.
// Entries that are not assignments are kept, because the program may read them.
class Variables {
public:
    static Variables of_this_process();
    explicit Variables(std::vector<std::string> entries) : entries_(std::move(entries)) {}

    // The value that getenv would return; null when unset. Valid until the next change.
    const char* get(std::string_view name) const;
    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);

    const std::vector<std::string>& entries() const { return entries_; }
    // For execve: null-terminated, valid until the next change.
    std::vector<char*> pointers() const;

private:
    std::vector<std::string> entries_;
};

// LD_PRELOAD with `library` first, then the previous entries in their order. A preload of an outer mp-trace
// is removed, because two of them would attach twice.
std::string with_preload(std::string_view before, std::string_view library);
// LD_PRELOAD without any library of ours.
std::string without_preload(std::string_view before);

// The same for PYTHONPATH and the directory of the shim.
std::string with_shim(std::string_view before, std::string_view directory);
std::string without_shim(std::string_view before);

// The variables through which NVIDIA's libraries load the library for CUDA programs. Each has one place.
inline constexpr const char* kCudaPlaces[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH",
                                              "NCCL_PROFILER_PLUGIN"};

// Sets a variable that names one library, unless it names one of another tool.
void set_if_free(Variables&, std::string_view name, std::string_view library);

// The environment for our helper programs (a compiler, the probing interpreter): the user's, without the
// additions of an outer mp-trace.
Variables untraced(Variables);

// ld.so splits LD_PRELOAD at blanks and colons without quoting; Python splits PYTHONPATH at colons.
bool fits_preload(std::string_view path);
bool fits_python_path(std::string_view path);

}  // namespace mp::launch
