// The plugin that NCCL loads if NCCL_PROFILER_PLUGIN names this library: which algorithm and protocol it chose for a
// collective. Where NCCL is linked statically, it is also the only source that tells of the collective at all.

#include "instrument/cuda/nccl_profiler.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "instrument/cuda/abi.hpp"
#include "instrument/cuda/communicators.hpp"
#include "instrument/cuda/dtypes.hpp"
#include "instrument/cuda/process.hpp"

namespace mp::raw {
namespace {

constexpr std::size_t kMostWaiting = 4096;

// Never freed, because NCCL's threads may end after us.
thread_local std::vector<Chosen>* t_chosen = nullptr;
std::atomic<bool> g_calls_are_seen{false};

// A rank of a communicator of the profiler interface.
struct Context {
    int ranks = 0;
};

std::string text_of(const char* text) { return text ? text : "?"; }

struct Collected {
    const char* nccl;
    const char* op;
    bool reduces;
};
constexpr Collected kCollectives[] = {{"AllReduce", "all_reduce", true},
                                      {"ReduceScatter", "reduce_scatter", true},
                                      {"Reduce", "reduce", true},
                                      {"AllGather", "all_gather", false},
                                      {"Broadcast", "broadcast", false}};

DType dtype_of_name(const char* name) {
    constexpr std::pair<const char*, DType> kNames[] = {
        {"ncclFloat16", DType::fp16},  {"ncclFloat32", DType::fp32},    {"ncclFloat64", DType::fp64},
        {"ncclBfloat16", DType::bf16}, {"ncclFloat8e4m3", DType::e4m3}, {"ncclFloat8e5m2", DType::e5m2}};
    for (const auto& [known, dtype] : kNames)
        if (name && std::strcmp(name, known) == 0) return dtype;
    return DType::unknown;
}

// A collective of an NCCL that is linked statically. Neither its operator nor its stream is told.
void count(const Context* context, const abi::NcclCollective& told) {
    for (const Collected& known : kCollectives) {
        if (!told.function || std::strcmp(told.function, known.nccl) != 0) continue;
        Collective c;
        c.op = known.op;
        c.reduction = known.reduces ? "unknown" : "";
        c.dtype = dtype_of_name(told.dtype);
        c.ranks = context ? context->ranks : 0;
        const OwnRank own = own_rank();
        if (own.rank >= 0) run()->learn_rank(own.rank, own.ranks);
        run()->told(c, text_of(told.algorithm) + "/" + text_of(told.protocol));
    }
}

void started(const Context* context, const abi::NcclEvent& event) {
    if (event.type != abi::kNcclCollectiveEvent) return;
    const abi::NcclCollective& c = event.collective;
    if (!g_calls_are_seen.load(std::memory_order_relaxed)) return count(context, c);
    if (!Inside::any()) return;
    if (!t_chosen) t_chosen = new std::vector<Chosen>;
    if (t_chosen->size() < kMostWaiting)
        t_chosen->push_back(
            {c.send, c.receive,
             text_of(c.algorithm) + "/" + text_of(c.protocol) + " x " + std::to_string(c.channels)});
}

// ---- What NCCL calls. Nothing here fails: NCCL hands such an error to the program. -----------------------

// An error of init() is the one that NCCL takes as "continue without the profiler".
int init(void** context, int* mask, std::uint64_t communicator, int ranks, int rank) noexcept {
    if (!context || !mask || !run() || !is_armed(Source::nccl)) return abi::kNcclInternalError;
    int result = abi::kNcclInternalError;
    guarded(Source::nccl, [&] {
        *context = new Context{ranks};  // NOLINT(bugprone-unhandled-exception-at-new): guarded() catches it
        *mask = abi::kNcclCollectiveEvent;
        join_communicator(&communicator, sizeof communicator, rank, ranks);
        result = 0;
    });
    return result;
}
int init_v4(void** context, int* mask, const char*, std::uint64_t communicator, int, int ranks, int rank,
            void*) {
    return init(context, mask, communicator, ranks, rank);
}
int init_v5(void** context, std::uint64_t communicator, int* mask, const char*, int, int ranks, int rank,
            void*) {
    return init(context, mask, communicator, ranks, rank);
}
int start_event(void* context, void** handle, const abi::NcclEvent* event) {
    if (handle) *handle = nullptr;
    if (event && run() && is_armed(Source::nccl))
        guarded(Source::nccl, [&] { started(static_cast<const Context*>(context), *event); });
    return 0;
}
int stop_event(void*) { return 0; }
int record_state(void*, int, void*) { return 0; }
int finalize(void* context) {
    delete static_cast<Context*>(context);
    return 0;
}

}  // namespace

std::vector<Chosen> take_chosen() noexcept {
    return t_chosen ? std::exchange(*t_chosen, {}) : std::vector<Chosen>{};
}

void calls_are_seen() noexcept { g_calls_are_seen.store(true, std::memory_order_relaxed); }

template <class Init>
struct Profiler {
    const char* name;
    Init init;
    int (*start_event)(void*, void**, const abi::NcclEvent*);
    int (*stop_event)(void*);
    int (*record_state)(void*, int, void*);
    int (*finalize)(void*);
};

}  // namespace mp::raw

#define MP_PROFILER(version)                                                            \
    extern "C" __attribute__((visibility("default")))                                   \
    const mp::raw::Profiler<decltype(&mp::raw::init_##version)>                         \
        ncclProfiler_##version {                                                        \
        "mp-trace", mp::raw::init_##version, mp::raw::start_event, mp::raw::stop_event, \
            mp::raw::record_state, mp::raw::finalize                                    \
    }
MP_PROFILER(v4);
MP_PROFILER(v5);
