#include "instrument/cuda/activity.hpp"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "instrument/cuda/abi.hpp"
#include "instrument/cuda/per_process.hpp"
#include "instrument/cuda/process.hpp"
#include "instrument/cuda/real.hpp"

namespace mp::raw::activity {
namespace {

constexpr std::size_t kBuffer = 1 << 18;  // bytes
constexpr int kMostBuffers = 32;
constexpr std::size_t kMostPending = 1 << 16;
constexpr std::uint64_t kOurs = ~std::uint64_t{0};

using Request = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
using Complete = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                          std::size_t valid);

struct Functions {
    int (*callbacks)(Request, Complete) = nullptr;
    int (*enable)(int kind) = nullptr;
    int (*disable)(int kind) = nullptr;
    int (*next)(std::uint8_t* buffer, std::size_t valid, int** record) = nullptr;
    int (*lost)(void* context, std::uint32_t stream, std::size_t* records) = nullptr;
    int (*flush)(std::uint32_t flag) = nullptr;
    int (*push)(int kind, std::uint64_t id) = nullptr;
    int (*pop)(int kind, std::uint64_t* id) = nullptr;

    bool complete() const { return callbacks && enable && disable && next && lost && flush && push && pop; }
};

struct Time {
    std::uint64_t kernels = 0, ns = 0;
};

struct State {
    Functions cupti;
    std::atomic<bool> on{false};
    std::atomic<int> buffers{0};
    std::atomic<std::uint64_t> dropped{0};

    std::mutex mutex;
    std::unordered_map<std::uint32_t, std::uint64_t> places;  // of launches whose kernel is not known yet
    std::unordered_map<std::uint32_t, Time> kernels;          // whose place is not known yet
    std::map<std::uint64_t, Time> times;                      // by place
};
constinit PerProcess<State> g_state;
State& state() { return g_state.get(); }

thread_local bool t_pushed = false;

// CUPTI ties a kernel to the call of the runtime or the driver that launched it, and that call to our number.
constexpr int kKinds[] = {abi::kActivityExternal, abi::kActivityRuntime, abi::kActivityDriver,
                          abi::kActivityKernel};

// False: it had ended before.
bool disable() {
    if (!state().on.exchange(false)) return false;
    for (const int kind : kKinds) state().cupti.disable(kind);
    return true;
}

void end(const char* call, int code) {
    if (!disable()) return;
    disarm(Source::activity, (std::string(call) + " gave error " + std::to_string(code)).c_str());
}

// False: the source has ended.
bool succeeded(const char* call, int code) {
    if (code != 0) end(call, code);
    return code == 0;
}

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
    *records = 0;
    *bytes = 0;
    *buffer = nullptr;
    if (state().buffers.fetch_add(1) < kMostBuffers)
        *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBuffer));
    if (*buffer) {
        *bytes = kBuffer;
    } else {
        --state().buffers;
    }
}

void add(State& s, std::uint64_t place, const Time& time) {
    if (place == kOurs) return;
    Time& all = s.times[place];
    all.kernels += time.kernels;
    all.ns += time.ns;
}

// The two records of a launch come in any order and in different buffers.
void take_record(State& s, const int* record) {
    if (*record == abi::kActivityExternal) {
        const auto& external = *reinterpret_cast<const abi::ExternalActivity*>(record);
        if (external.external_kind != abi::kExternalCustom) return;
        const auto kernel = s.kernels.find(external.correlation);
        if (kernel != s.kernels.end()) {
            add(s, external.external, kernel->second);
            s.kernels.erase(kernel);
        } else if (s.places.size() < kMostPending) {
            s.places[external.correlation] = external.external;
        } else {
            // Most calls launch nothing. Kernels whose place is forgotten here count for no layer.
            s.places.clear();
        }
    } else if (*record == abi::kActivityKernel) {
        const auto& kernel = *reinterpret_cast<const abi::KernelActivity*>(record);
        const Time time{1, kernel.end > kernel.start ? kernel.end - kernel.start : 0};
        const auto place = s.places.find(kernel.correlation);
        if (place != s.places.end()) {
            add(s, place->second, time);
            s.places.erase(place);
        } else if (s.kernels.size() < kMostPending) {
            s.kernels[kernel.correlation] = time;
        } else {
            ++s.dropped;
        }
    }
}

void complete(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    const Inside inside;
    guarded(Source::activity, [&] {
        State& s = state();
        const std::lock_guard lock(s.mutex);
        int* record = nullptr;
        while (valid > 0 && s.cupti.next(buffer, valid, &record) == 0 && record) take_record(s, record);
        std::size_t lost = 0;
        if (s.cupti.lost(context, stream, &lost) == 0) s.dropped += lost;
    });
    std::free(buffer);
    if (buffer) --state().buffers;
}

Functions functions_of(void* library) {
    Functions f;
    find(library, "cuptiActivityRegisterCallbacks", f.callbacks);
    find(library, "cuptiActivityEnable", f.enable);
    find(library, "cuptiActivityDisable", f.disable);
    find(library, "cuptiActivityGetNextRecord", f.next);
    find(library, "cuptiActivityGetNumDroppedRecords", f.lost);
    find(library, "cuptiActivityFlushAll", f.flush);
    find(library, "cuptiActivityPushExternalCorrelationId", f.push);
    find(library, "cuptiActivityPopExternalCorrelationId", f.pop);
    return f;
}

}  // namespace

void begin(void* library) noexcept {
    guarded(Source::activity, [library] {
        State& s = state();
        s.cupti = functions_of(library);
        if (!s.cupti.complete()) return disarm(Source::activity, "libcupti lacks a function");
        s.on = true;
        if (!succeeded("cuptiActivityRegisterCallbacks", s.cupti.callbacks(request, complete))) return;
        for (const int kind : kKinds)
            if (!succeeded("cuptiActivityEnable", s.cupti.enable(kind))) return;
    });
}

void stop() noexcept { disable(); }

void forget() noexcept { g_state.renew(); }

// One number at a time is on CUPTI's stack of this thread.
void moved_to(PlaceId place) noexcept {
    State& s = state();
    if (!s.on.load(std::memory_order_relaxed)) return;
    std::uint64_t before = 0;
    if (t_pushed) s.cupti.pop(abi::kExternalCustom, &before);
    t_pushed = succeeded("cuptiActivityPushExternalCorrelationId", s.cupti.push(abi::kExternalCustom, place));
}

Ours::Ours() noexcept
    : pushed_(state().on.load(std::memory_order_relaxed) &&
              state().cupti.push(abi::kExternalCustom, kOurs) == 0) {}
Ours::~Ours() {
    std::uint64_t before = 0;
    if (pushed_) state().cupti.pop(abi::kExternalCustom, &before);
}

std::vector<trace::TimeRecord> take(const Places& places) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    std::map<std::pair<std::string, Phase>, Time> named;
    for (const auto& [id, time] : std::exchange(s.times, {})) {
        const Place& place = places[static_cast<PlaceId>(id)];
        Time& all = named[{place.layer, place.phase}];
        all.kernels += time.kernels;
        all.ns += time.ns;
    }
    std::vector<trace::TimeRecord> records;
    for (const auto& [key, time] : named) records.push_back({key.first, key.second, time.kernels, time.ns});
    return records;
}

void flush() noexcept {
    State& s = state();
    if (!s.on) return;
    succeeded("cuptiActivityFlushAll", s.cupti.flush(abi::kFlushForced));
    guarded(Source::activity, [&s] {
        const std::lock_guard lock(s.mutex);
        std::size_t lost = 0;
        if (s.cupti.lost(nullptr, 0, &lost) == 0) s.dropped += lost;
        // What was launched outside of all ranges has no number.
        for (const auto& [correlation, time] : std::exchange(s.kernels, {})) add(s, 0, time);
    });
}

std::uint64_t dropped() noexcept { return state().dropped; }

}  // namespace mp::raw::activity
