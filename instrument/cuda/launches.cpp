// Launches of kernels, from CUPTI's callbacks of the driver. Names are all that is known of them. CUPTI is found at run
// time and allows one client in a process: if it has one, the reason is recorded and everything else goes on.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "instrument/cuda/abi.hpp"
#include "instrument/cuda/activity.hpp"
#include "instrument/cuda/hooks.hpp"
#include "instrument/cuda/launches.hpp"
#include "instrument/cuda/real.hpp"
#include "runtime/trace/note_texts.hpp"

namespace mp::raw {
namespace {

using Callback = void (*)(void*, int domain, std::uint32_t id, const abi::CallbackData*);

struct Cupti {
    int (*subscribe)(void** handle, Callback, void* data) = nullptr;
    int (*subscribe_v2)(void** handle, Callback, void* data, abi::CuptiSubscriber*) = nullptr;
    int (*enable)(std::uint32_t on, void* handle, int domain, std::uint32_t id) = nullptr;
    int (*text)(int code, const char** text) = nullptr;
    int (*unsubscribe)(void* handle) = nullptr;
};

std::atomic<void*> g_handle{nullptr};
std::atomic<int (*)(void*)> g_unsubscribe{nullptr};

// CUpti_driver_api_trace_cbid of cuLaunchKernel, cuLaunchCooperativeKernel, cuGraphLaunch and cuLaunchKernelEx, each
// also for the stream of the thread. The runtime's launches come here too, whatever way it was linked.
constexpr std::uint32_t kLaunches[] = {307, 442, 477, 478, 514, 515, 652, 653};

constexpr const char* kNotFound = "libcupti was not found";

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
constexpr const char* kPlaces[] = {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"};

void on_launch(void*, int domain, std::uint32_t, const abi::CallbackData* data) {
    if (domain != abi::kCuptiDriverDomain || !data || data->site != 0 || Inside::any()) return;
    Run* const r = run();
    if (!r || !is_armed(Source::cupti)) return;
    guarded(Source::cupti, [&] { r->launched(data->symbol ? data->symbol : trace::kGraph); });
}

void* open_cupti() {
    for (const char* const name : kNames)
        if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
    for (const char* const name : kNames)
        if (void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    for (const char* const root : {static_cast<const char*>(std::getenv("CUDA_HOME")), "/usr/local/cuda"})
        for (const char* const place : kPlaces)
            for (const char* const name : kNames)
                if (void* const library =
                        root ? ::dlopen((std::string(root) + place + name).c_str(), RTLD_NOW | RTLD_LOCAL)
                             : nullptr)
                    return library;
    return nullptr;
}

Cupti cupti_of(void* library) {
    Cupti c;
    find(library, "cuptiSubscribe", c.subscribe);
    find(library, "cuptiSubscribe_v2", c.subscribe_v2);
    find(library, "cuptiEnableCallback", c.enable);
    find(library, "cuptiGetResultString", c.text);
    find(library, "cuptiUnsubscribe", c.unsubscribe);
    return c;
}

// The code of CUPTI. `holder`: the client that has its only place, where it tells.
int subscribe(const Cupti& cupti, void*& handle, std::string& holder) {
    constexpr int kInvalidParameter = 1, kNotImplemented = 1028;
    if (cupti.subscribe_v2) {
        std::array<char, 256> name{};
        abi::CuptiSubscriber params{};
        params.size = sizeof params;
        params.name = "mp-trace";
        params.holder = name.data();
        params.holder_size = name.size();
        const int code = cupti.subscribe_v2(&handle, on_launch, nullptr, &params);
        name.back() = '\0';
        if (code == abi::kCuptiManySubscribers) holder = name.data();
        if (!cupti.subscribe || (code != kInvalidParameter && code != kNotImplemented)) return code;
    }
    return cupti.subscribe(&handle, on_launch, nullptr);
}

std::string why_not(const Cupti& cupti, int code, const std::string& holder) {
    std::string why = "CUPTI gave error " + std::to_string(code);
    const char* text = nullptr;
    if (cupti.text && cupti.text(code, &text) == 0 && text) why += " (" + std::string(text) + ")";
    if (code == abi::kCuptiManySubscribers)
        why += ", because another client has its only place" + (holder.empty() ? "" : ": " + holder);
    return why;
}

// Empty: the launches are seen.
std::string watch() {
    void* const library = open_cupti();
    if (!library) return kNotFound;
    const Cupti cupti = cupti_of(library);
    if ((!cupti.subscribe && !cupti.subscribe_v2) || !cupti.enable) return "libcupti has no callbacks";
    void* handle = nullptr;
    std::string holder;
    int code = subscribe(cupti, handle, holder);
    if (code != 0) return why_not(cupti, code, holder);
    g_unsubscribe = cupti.unsubscribe;
    g_handle = handle;
    int enabled = 0;
    for (const std::uint32_t id : kLaunches) {
        const int result = cupti.enable(1, handle, abi::kCuptiDriverDomain, id);
        enabled += result == 0;
        if (result != 0) code = result;
    }
    if (run()->options().device_times) activity::begin(library);
    return enabled > 0 ? std::string() : why_not(cupti, code, holder);
}

}  // namespace

void watch_launches() noexcept {
    static std::atomic<bool> tried{false};
    if (tried.exchange(true)) return;
    // CUPTI calls the driver, whose calls are not the program's.
    const Inside inside;
    Run* const r = run();
    if (!r) return;
    guarded(Source::cupti, [r] {
        // Without a driver there is nothing to see.
        if (!::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) return;
        const std::string why = watch();
        if (why.empty()) return;
        r->note(trace::NoteKind::disarmed, "kernels are not seen: " + why);
        if (why != kNotFound && !r->options().quiet)
            std::fprintf(stderr, "mp-trace: kernels are not seen: %s; everything else is\n", why.c_str());
    });
    ::dlerror();
}

void stop_watching() noexcept {
    activity::stop();
    void* const handle = g_handle.exchange(nullptr);
    if (handle && g_unsubscribe) g_unsubscribe.load()(handle);
}

}  // namespace mp::raw

// The driver calls this when it starts, if CUDA_INJECTION64_PATH names this library.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    mp::raw::watch_launches();
    return 1;
}
