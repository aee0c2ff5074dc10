// A fake libcupti.so.13: callbacks of the driver domain around each launch, and kernel records of the activity API.
// MP_FAKE_CUDA makes each call fail with any code. MP_FAKE_CUPTI_HOLDER is the name of another subscriber, and
// MP_FAKE_CUPTI_CRASH a call that crashes.
#include <cupti.h>

#include <bitset>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"

namespace {

using Record = std::variant<CUpti_ActivityKernel10, CUpti_ActivityExternalCorrelation, CUpti_ActivityAPI>;

// The numbers that a thread has pushed.
thread_local std::vector<std::pair<CUpti_ExternalCorrelationKind, std::uint64_t>> pushed;

struct Subscriber {
    CUpti_CallbackFunc callback = nullptr;
    void* user = nullptr;
    std::bitset<2048> driver;  // enabled callbacks of the driver domain
    std::mutex mutex;
    std::vector<Record> records;
    std::bitset<64> kinds;    // of activity that are enabled
    std::size_t dropped = 0;  // records for which there was no buffer
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
};
Subscriber& subscriber() {
    static Subscriber* const only = new Subscriber;
    return *only;
}

CUptiResult answer_of(const char* call) {
    const char* const crash = std::getenv("MP_FAKE_CUPTI_CRASH");
    if (crash && std::strcmp(crash, call) == 0) __builtin_trap();
    return static_cast<CUptiResult>(mp::fake::fault(call));
}

// The record of a call, and before it the number that its thread pushed last.
void record_call(const mp::fake::Call& call) {
    Subscriber& s = subscriber();
    const std::lock_guard lock(s.mutex);
    if (!s.kinds.test(CUPTI_ACTIVITY_KIND_DRIVER)) return;
    if (s.kinds.test(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) && !pushed.empty()) {
        CUpti_ActivityExternalCorrelation external{};
        external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        external.externalKind = pushed.back().first;
        external.externalId = pushed.back().second;
        external.correlationId = call.correlation;
        s.records.emplace_back(external);
    }
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    api.correlationId = call.correlation;
    s.records.emplace_back(api);
}

void tell(bool enter, const mp::fake::Call& call) {
    Subscriber& s = subscriber();
    if (enter) record_call(call);
    if (!s.callback || !s.driver.test(static_cast<std::size_t>(call.id))) return;
    CUcontext context = nullptr;
    cuCtxGetCurrent(&context);
    CUpti_CallbackData data{};
    data.callbackSite = enter ? CUPTI_API_ENTER : CUPTI_API_EXIT;
    data.functionName = call.function;
    data.functionParams = call.parameters;
    data.functionReturnValue = call.result;
    data.symbolName = call.symbol;
    data.context = context;
    data.contextUid = 1;
    data.correlationData = call.data;
    data.correlationId = call.correlation;
    s.callback(s.user, CUPTI_CB_DOMAIN_DRIVER_API, static_cast<CUpti_CallbackId>(call.id), &data);
}

CUptiResult subscribe(CUpti_SubscriberHandle* into, CUpti_CallbackFunc callback, void* user) {
    Subscriber& s = subscriber();
    if (s.callback) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    s.callback = callback;
    s.user = user;
    mp::fake::set_hook(tell);
    if (into) *into = reinterpret_cast<CUpti_SubscriberHandle>(&s);
    return CUPTI_SUCCESS;
}

void ran(const mp::fake::Ran& r) {
    CUpti_ActivityKernel10 k{};
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.name = r.symbol;
    k.correlationId = r.correlation;
    k.streamId = r.stream;
    k.start = r.start;
    k.end = r.end;
    k.contextId = 1;
    k.gridX = static_cast<int>(r.grid[0]);
    k.blockX = static_cast<int>(r.block[0]);
    Subscriber& s = subscriber();
    const std::lock_guard lock(s.mutex);
    if (s.kinds.test(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) s.records.emplace_back(k);
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
    *version = 130001;
    return answer_of("cuptiGetVersion");
}
CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult, const char** text) {
    *text = "FAKE";
    return answer_of("cuptiGetResultString");
}
CUptiResult CUPTIAPI cuptiGetLastError() { return CUPTI_SUCCESS; }
CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* time) {
    *time = 0;
    return answer_of("cuptiGetTimestamp");
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* into, CUpti_CallbackFunc callback, void* user) {
    const CUptiResult code = answer_of("cuptiSubscribe");
    return code != CUPTI_SUCCESS ? code : subscribe(into, callback, user);
}
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* into, CUpti_CallbackFunc callback, void* user,
                                       CUpti_SubscriberParams* params) {
    CUptiResult code = answer_of("cuptiSubscribe_v2");
    if (code == CUPTI_SUCCESS) code = subscribe(into, callback, user);
    const char* const holder = std::getenv("MP_FAKE_CUPTI_HOLDER");
    if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder)
        std::strncpy(params->oldSubscriberName, holder, params->oldSubscriberSize);
    return code;
}
#endif
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
    mp::fake::set_hook(nullptr);
    subscriber().callback = nullptr;
    return answer_of("cuptiUnsubscribe");
}
CUptiResult CUPTIAPI cuptiFinalize() { return answer_of("cuptiFinalize"); }

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                         CUpti_CallbackId id) {
    const CUptiResult code = answer_of("cuptiEnableCallback");
    if (code != CUPTI_SUCCESS) return code;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id < 2048) subscriber().driver.set(id, enable != 0);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain) {
    const CUptiResult code = answer_of("cuptiEnableDomain");
    if (code != CUPTI_SUCCESS) return code;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        enable ? subscriber().driver.set() : subscriber().driver.reset();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
    const CUptiResult code = answer_of("cuptiActivityRegisterCallbacks");
    if (code != CUPTI_SUCCESS) return code;
    subscriber().request = request;
    subscriber().complete = complete;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
    const CUptiResult code = answer_of("cuptiActivityEnable");
    if (code != CUPTI_SUCCESS || kind >= 64) return code;
    const std::lock_guard lock(subscriber().mutex);
    subscriber().kinds.set(kind);
    mp::fake::set_ran_hook(ran);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
    const std::lock_guard lock(subscriber().mutex);
    if (kind < 64) subscriber().kinds.reset(kind);
    return answer_of("cuptiActivityDisable");
}
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    const CUptiResult code = answer_of("cuptiActivityPushExternalCorrelationId");
    if (code == CUPTI_SUCCESS) pushed.emplace_back(kind, id);
    return code;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t* id) {
    const CUptiResult code = answer_of("cuptiActivityPopExternalCorrelationId");
    if (code != CUPTI_SUCCESS) return code;
    if (pushed.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    *id = pushed.back().second;
    pushed.pop_back();
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
    const CUptiResult code = answer_of("cuptiActivityFlushAll");
    Subscriber& s = subscriber();
    if (code != CUPTI_SUCCESS || !s.request || !s.complete) return code;
    std::vector<Record> records;
    {
        const std::lock_guard lock(s.mutex);
        records.swap(s.records);
    }
    for (std::size_t at = 0; at < records.size();) {
        uint8_t* buffer = nullptr;
        std::size_t size = 0, most = 0, used = 0;
        if (answer_of("buffer") == CUPTI_SUCCESS) s.request(&buffer, &size, &most);
        if (!buffer) {
            s.dropped += records.size() - at;
            break;
        }
        for (; at < records.size(); ++at) {
            const auto copied = std::visit(
                [&](const auto& record) {
                    if (used + sizeof record > size) return false;
                    std::memcpy(buffer + used, &record, sizeof record);
                    used += sizeof record;
                    return true;
                },
                records[at]);
            if (!copied) break;
        }
        s.complete(nullptr, 0, buffer, size, used);
    }
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
    const CUptiResult code = answer_of("cuptiActivityGetNextRecord");
    if (code != CUPTI_SUCCESS) return code;
    auto* next = buffer;
    if (*record) {
        const std::size_t size = (*record)->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION
                                     ? sizeof(CUpti_ActivityExternalCorrelation)
                                 : (*record)->kind == CUPTI_ACTIVITY_KIND_DRIVER
                                     ? sizeof(CUpti_ActivityAPI)
                                     : sizeof(CUpti_ActivityKernel10);
        next = reinterpret_cast<uint8_t*>(*record) + size;
    }
    if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    *dropped = std::exchange(subscriber().dropped, 0);
    return answer_of("cuptiActivityGetNumDroppedRecords");
}

}  // extern "C"
