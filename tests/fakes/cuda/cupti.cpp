// A fake libcupti.so.13: callbacks of the driver domain around each launch, and kernel records of the activity API.
// MP_FAKE_CUDA makes each call fail with any code. MP_FAKE_CUPTI_HOLDER is the name of another subscriber, and
// MP_FAKE_CUPTI_CRASH a call that crashes.
#include <cupti.h>

#include <bitset>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tests/fakes/cuda/device.hpp"
#include "tests/fakes/cuda/faults.hpp"

namespace {

struct Subscriber {
    CUpti_CallbackFunc callback = nullptr;
    void* user = nullptr;
    std::bitset<2048> driver;  // enabled callbacks of the driver domain
    std::mutex mutex;
    std::vector<CUpti_ActivityKernel10> kernels;
    bool records = false;
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

void tell(bool enter, const mp::fake::Call& call) {
    Subscriber& s = subscriber();
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
    if (s.records) s.kernels.push_back(k);
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
    if (code != CUPTI_SUCCESS || kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return code;
    const std::lock_guard lock(subscriber().mutex);
    subscriber().records = true;
    mp::fake::set_ran_hook(ran);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind) {
    const std::lock_guard lock(subscriber().mutex);
    subscriber().records = false;
    return answer_of("cuptiActivityDisable");
}
CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t) {
    return answer_of("cuptiActivityPushExternalCorrelationId");
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t*) {
    return answer_of("cuptiActivityPopExternalCorrelationId");
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
    const CUptiResult code = answer_of("cuptiActivityFlushAll");
    Subscriber& s = subscriber();
    if (code != CUPTI_SUCCESS || !s.request || !s.complete) return code;
    std::vector<CUpti_ActivityKernel10> kernels;
    {
        const std::lock_guard lock(s.mutex);
        kernels.swap(s.kernels);
    }
    for (std::size_t at = 0; at < kernels.size();) {
        uint8_t* buffer = nullptr;
        std::size_t size = 0, most = 0;
        s.request(&buffer, &size, &most);
        std::size_t n = std::min(size / sizeof kernels[0], kernels.size() - at);
        if (!buffer || n == 0) return CUPTI_ERROR_OUT_OF_MEMORY;
        std::memcpy(buffer, kernels.data() + at, n * sizeof kernels[0]);
        s.complete(nullptr, 0, buffer, size, n * sizeof kernels[0]);
        at += n;
    }
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
    auto* const first = reinterpret_cast<CUpti_ActivityKernel10*>(buffer);
    auto* const next = *record ? reinterpret_cast<CUpti_ActivityKernel10*>(*record) + 1 : first;
    if (next >= first + valid / sizeof *first) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
}

}  // extern "C"
