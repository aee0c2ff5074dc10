#include "instrument/cuda/real.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <climits>
#include <cstring>

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

// In a library and in what it depends on. The library is loaded already and stays so.
void* in_library(const char* path, const char* name) {
    void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return nullptr;
    void* const at = ::dlsym(handle, name);
    ::dlclose(handle);
    return is_ours(at) ? nullptr : at;
}

struct Search {
    const char* library;
    char path[PATH_MAX];
    int found = 0;
};

int visit(dl_phdr_info* info, std::size_t, void* out) {
    auto* const search = static_cast<Search*>(out);
    if (std::strncmp(file_name(info->dlpi_name), search->library, std::strlen(search->library)) != 0)
        return 0;
    if (std::strlen(info->dlpi_name) >= sizeof search->path) return 0;
    if (search->found++ == 0) std::strcpy(search->path, info->dlpi_name);
    return 0;
}

}  // namespace

void* find_real(const char* name, const char* library, const void* caller, bool& is_certain) noexcept {
    const int before = errno;
    is_certain = true;
    void* at = ::dlsym(RTLD_NEXT, name);
    if (!at) {
        Search search{library, {}, 0};
        ::dl_iterate_phdr(visit, &search);
        is_certain = search.found == 1;
        Dl_info info;
        if (caller && ::dladdr(caller, &info) && info.dli_fname) at = in_library(info.dli_fname, name);
        if (!at && search.found > 0) at = in_library(search.path, name);
        is_certain = is_certain && at;
    }
    ::dlerror();  // the program must not see our errors
    errno = before;
    return at;
}

}  // namespace mp::raw
