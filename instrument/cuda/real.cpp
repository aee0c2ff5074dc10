#include "instrument/cuda/real.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace mp::raw {
namespace {

const char* file_name(const char* path) {
    const char* const slash = std::strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_ours(void* at) {
    Dl_info own, found;
    return at && ::dladdr(reinterpret_cast<void*>(&find_real), &own) && ::dladdr(at, &found) &&
           own.dli_fbase == found.dli_fbase;
}

// In a loaded library and in what it depends on.
void* in_library(const char* path, const char* name) {
    void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return nullptr;
    void* const at = ::dlsym(handle, name);
    ::dlclose(handle);
    return is_ours(at) ? nullptr : at;
}

struct Loaded {
    std::vector<std::string> paths;
    const char* library;
    int called_so = 0;  // file names that begin with `library`
};

int visit(dl_phdr_info* info, std::size_t, void* out) {
    auto* const loaded = static_cast<Loaded*>(out);
    const bool called_so =
        std::strncmp(file_name(info->dlpi_name), loaded->library, std::strlen(loaded->library)) == 0;
    loaded->called_so += called_so;
    loaded->paths.insert(called_so ? loaded->paths.begin() : loaded->paths.end(), info->dlpi_name);
    return 0;
}

// In any library of the process, those with the expected name first. A program that works without us has one.
void* anywhere(const Loaded& loaded, const char* name) {
    for (const std::string& path : loaded.paths)
        if (void* const at = path.empty() ? nullptr : in_library(path.c_str(), name)) return at;
    return nullptr;
}

// An address is kept only if its library cannot be unloaded.
bool stays(void* at) {
    Dl_info info;
    return ::dladdr(at, &info) && info.dli_fname &&
           ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void* look_up(const char* name, const char* library, const void* caller, bool& is_certain) {
    if (void* const at = ::dlsym(RTLD_NEXT, name)) return at;
    Loaded loaded{{}, library};
    ::dl_iterate_phdr(visit, &loaded);
    is_certain = loaded.called_so == 1;
    Dl_info info;
    void* at =
        caller && ::dladdr(caller, &info) && info.dli_fname ? in_library(info.dli_fname, name) : nullptr;
    return at ? at : anywhere(loaded, name);
}

}  // namespace

void* find_real(const char* name, const char* library, const void* caller, bool& is_certain) noexcept {
    const int before = errno;
    void* at = nullptr;
    is_certain = true;
    try {
        at = look_up(name, library, caller, is_certain);
        is_certain = is_certain && at && stays(at);
    } catch (const std::exception&) {
        is_certain = false;
    }
    ::dlerror();  // the program must not see our errors
    errno = before;
    return at;
}

}  // namespace mp::raw
