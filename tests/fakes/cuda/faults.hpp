#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

// What MP_FAKE_CUDA asks the fakes to do wrong: "call=code,call#n=code". Without #n every call returns the code, with
// it only the n-th call (from 1) of the process. The file that MP_FAKE_CUDA_FAULTS names has a line for each fault.
namespace mp::fake {

inline int told(const char* call, int code) {
    static const char* const path = std::getenv("MP_FAKE_CUDA_FAULTS");
    std::FILE* const file = path && code != 0 ? std::fopen(path, "ae") : nullptr;
    if (!file) return code;
    std::fprintf(file, "%s\n", call);
    std::fclose(file);
    return code;
}

// The code that this call must return; 0 if none.
inline int fault(const char* call) {
    static const char* const list = std::getenv("MP_FAKE_CUDA");
    if (!list) return 0;
    static std::mutex mutex;
    static std::map<std::string, int>* const counts = new std::map<std::string, int>;
    const std::lock_guard lock(mutex);
    const int number = ++(*counts)[call];
    const std::size_t length = std::strlen(call);
    for (const char* at = list; at; at = std::strchr(at, ',')) {
        if (*at == ',') ++at;
        if (std::strncmp(at, call, length) != 0) continue;
        const char* rest = at + length;
        if (*rest == '#' && std::strtol(rest + 1, const_cast<char**>(&rest), 10) != number) continue;
        if (*rest == '=') return told(call, std::atoi(rest + 1));
    }
    return 0;
}

}  // namespace mp::fake
