#include "instrument/cupti/probe.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace mp::cupti {
namespace {

// Newest first. Up to CUDA 11 the number is the toolkit's version, since 12 its major version.
constexpr std::array kNames = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7",
                               "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3",
                               "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};
constexpr std::array kToolkitPlaces = {"/extras/CUPTI/lib64", "/lib64"};

template <std::size_t Size>
void put(char (&room)[Size], std::string_view text) {
    const std::size_t length = text.size() < Size ? text.size() : Size - 1;
    std::memcpy(room, text.data(), length);
    room[length] = '\0';
}

void CUPTIAPI ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void fail(const Api& api, MpCuptiProbe& probe, const char* call, CUptiResult code) {
    probe.state = code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? mp_cupti_held : mp_cupti_refused;
    probe.code = static_cast<std::int32_t>(code);
    put(probe.call, call);
    const char* words = nullptr;
    if (api.get_result_string && api.get_result_string(code, &words) == CUPTI_SUCCESS && words)
        put(probe.message, words);
}

// Returns the name of the called function, for the message. The newer function also returns the other
// subscriber's name.
const char* subscribe(const Api& api, MpCuptiProbe& probe, CUpti_SubscriberHandle& handle,
                      CUptiResult& code) {
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    if (api.subscribe_v2) {
        std::array<char, sizeof probe.holder> holder{};
        CUpti_SubscriberParams params{};
        params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
        params.subscriberName = "mp-trace doctor";
        params.oldSubscriberName = holder.data();
        params.oldSubscriberSize = holder.size();
        code = api.subscribe_v2(&handle, ignore, nullptr, &params);
        holder.back() = '\0';
        if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) put(probe.holder, holder.data());
        // This CUPTI has a different struct. The older function needs none.
        const bool other_struct =
            code == CUPTI_ERROR_INVALID_PARAMETER || code == CUPTI_ERROR_API_NOT_IMPLEMENTED;
        if (!other_struct || !api.subscribe) return "cuptiSubscribe_v2";
    }
#endif
    code = api.subscribe(&handle, ignore, nullptr);
    return "cuptiSubscribe";
}

bool can_subscribe(const Api& api) {
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    if (api.subscribe_v2) return true;
#endif
    return api.subscribe;
}

template <typename Function>
void find(void* library, const char* name, Function& into) {
    into = reinterpret_cast<Function>(dlsym(library, name));
}

void* open_one(const std::string& name, int flags, MpCuptiProbe& probe) {
    void* const library = dlopen(name.c_str(), flags);
    if (library) {
        put(probe.library, name);
    } else if (const char* const words = dlerror(); words && !(flags & RTLD_NOLOAD) && !probe.message[0]) {
        put(probe.message, words);
    }
    return library;
}

void* open_in(std::string_view directory, MpCuptiProbe& probe) {
    if (directory.empty()) return nullptr;
    for (const char* const name : kNames)
        if (void* const library = open_one(std::string(directory) + "/" + name, RTLD_NOW | RTLD_LOCAL, probe))
            return library;
    return nullptr;
}

}  // namespace

void* open_library(const char* directories, MpCuptiProbe& probe) {
    for (const char* const name : kNames)
        if (void* const library = open_one(name, RTLD_NOW | RTLD_NOLOAD, probe)) return library;
    std::string_view rest = directories ? directories : "";
    while (!rest.empty()) {
        const std::size_t cut = std::min(rest.find(':'), rest.size());
        if (void* const library = open_in(rest.substr(0, cut), probe)) return library;
        rest.remove_prefix(std::min(cut + 1, rest.size()));
    }
    for (const char* const name : kNames)
        if (void* const library = open_one(name, RTLD_NOW | RTLD_LOCAL, probe)) return library;
    const char* const home = std::getenv("CUDA_HOME");
    for (const char* const toolkit : {home, "/usr/local/cuda"})
        for (const char* const place : kToolkitPlaces)
            if (void* const library = toolkit ? open_in(std::string(toolkit) + place, probe) : nullptr)
                return library;
    return nullptr;
}

Api api_of(void* library) {
    Api api;
    find(library, "cuptiGetVersion", api.get_version);
    find(library, "cuptiGetResultString", api.get_result_string);
    find(library, "cuptiSubscribe", api.subscribe);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
    find(library, "cuptiSubscribe_v2", api.subscribe_v2);
#endif
    find(library, "cuptiUnsubscribe", api.unsubscribe);
    return api;
}

void probe(const Api& api, MpCuptiProbe& probe) {
    if (!can_subscribe(api) || !api.unsubscribe) {
        probe.state = mp_cupti_incomplete;
        put(probe.message, api.unsubscribe ? "cuptiSubscribe" : "cuptiUnsubscribe");
        return;
    }
    // An unknown version is not an error.
    std::uint32_t version = 0;
    if (api.get_version && api.get_version(&version) == CUPTI_SUCCESS) probe.version = version;
    CUpti_SubscriberHandle handle = nullptr;
    CUptiResult code = CUPTI_ERROR_UNKNOWN;
    const char* const call = subscribe(api, probe, handle, code);
    if (code != CUPTI_SUCCESS) return fail(api, probe, call, code);
    // Unsubscribe, because otherwise no other subscriber could use CUPTI in this process.
    code = api.unsubscribe(handle);
    if (code != CUPTI_SUCCESS) return fail(api, probe, "cuptiUnsubscribe", code);
    probe.state = mp_cupti_free;
}

}  // namespace mp::cupti

extern "C" __attribute__((visibility("default"))) int mptrace_cupti_probe(MpCuptiProbe* probe,
                                                                          const char* directories) {
    if (!probe || probe->size != sizeof(MpCuptiProbe)) return -1;
    *probe = MpCuptiProbe{};
    probe->size = sizeof(MpCuptiProbe);
    void* const library = mp::cupti::open_library(directories, *probe);
    if (!library) return 0;
    probe->message[0] = '\0';  // remove the messages of earlier names that were not found
    // Never closed: CUPTI leaves threads and handlers behind.
    mp::cupti::probe(mp::cupti::api_of(library), *probe);
    return 0;
}
