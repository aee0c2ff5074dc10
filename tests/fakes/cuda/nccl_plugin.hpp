#pragma once

#include <dlfcn.h>
#include <nccl.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

// How the fake libnccl.so.2 reports its collectives to NCCL_PROFILER_PLUGIN.
namespace mp::fake {

// NCCL's profiler interface, versions 4 and 5, as plugins/profiler of its sources has it: the parts that this uses.
struct ProfiledCollective {
    std::uint64_t number;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* dtype;
    std::uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
    void* parent_group;  // in version 5
};
template <class Type>
struct ProfiledEvent {
    Type type;
    void* parent;
    int rank;
    ProfiledCollective collective;
};
template <class Type, class... Init>
struct Profiler {
    const char* name;
    ncclResult_t (*init)(Init...);
    ncclResult_t (*start)(void* context, void** handle, ProfiledEvent<Type>*);
    ncclResult_t (*stop)(void* handle);
    ncclResult_t (*record)(void* handle, int state, void* arguments);
    ncclResult_t (*finalize)(void* context);
};
using Profiler4 = Profiler<std::uint8_t, void**, int*, const char*, std::uint64_t, int, int, int, void*>;
using Profiler5 = Profiler<std::uint64_t, void**, std::uint64_t, int*, const char*, int, int, int, void*>;

// The plugin of this process, in the newest version that it has. MP_FAKE_NCCL_PROFILER=4: an older NCCL.
struct Plugin {
    const Profiler4* v4 = nullptr;
    const Profiler5* v5 = nullptr;

    Plugin() {
        const char* const path = std::getenv("NCCL_PROFILER_PLUGIN");
        void* const library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!library) return;
        const char* const newest = std::getenv("MP_FAKE_NCCL_PROFILER");
        if (!newest || std::strcmp(newest, "4") != 0)
            v5 = static_cast<const Profiler5*>(dlsym(library, "ncclProfiler_v5"));
        if (!v5) v4 = static_cast<const Profiler4*>(dlsym(library, "ncclProfiler_v4"));
    }
    // The context; null: the plugin refused.
    void* begin(std::uint64_t communicator, int ranks, int rank, int& mask) const {
        void* context = nullptr;
        ncclResult_t result = ncclInternalError;
        if (v5) result = v5->init(&context, communicator, &mask, nullptr, 1, ranks, rank, nullptr);
        if (v4) result = v4->init(&context, &mask, nullptr, communicator, 1, ranks, rank, nullptr);
        return result == ncclSuccess ? context : nullptr;
    }
    void tell(void* context, const ProfiledCollective& c, int rank) const {
        void* handle = nullptr;
        ProfiledEvent<std::uint8_t> four{2, nullptr, rank, c};
        ProfiledEvent<std::uint64_t> five{2, nullptr, rank, c};
        if (v4) v4->start(context, &handle, &four);
        if (v5) v5->start(context, &handle, &five);
        if (handle && v4) v4->stop(handle);
        if (handle && v5) v5->stop(handle);
    }
    void end(void* context) const {
        if (v4) v4->finalize(context);
        if (v5) v5->finalize(context);
    }
};
inline const Plugin& plugin() {
    static const Plugin only;
    return only;
}

}  // namespace mp::fake
