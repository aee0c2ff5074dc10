#include <cstdlib>
#include <cstring>

#include <cupti.h>

// A libcupti whose results are set by MP_FAKE_CUPTI: "call=code,call=code". A call that is not listed
// succeeds. MP_FAKE_CUPTI_HOLDER is the name of the other subscriber, MP_FAKE_CUPTI_CRASH a call that
// crashes.
namespace {

CUptiResult answer_of(const char* call) {
    const char* const crash = std::getenv("MP_FAKE_CUPTI_CRASH");
    if (crash && std::strcmp(crash, call) == 0) __builtin_trap();
    const char* const list = std::getenv("MP_FAKE_CUPTI");
    const std::size_t length = std::strlen(call);
    for (const char* at = list ? std::strstr(list, call) : nullptr; at; at = std::strstr(at + 1, call))
        if (at[length] == '=') return static_cast<CUptiResult>(std::atoi(at + length + 1));
    return CUPTI_SUCCESS;
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

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
    return answer_of("cuptiSubscribe");
}

#ifdef CUpti_SubscriberParams_STRUCT_SIZE
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                                       CUpti_SubscriberParams* params) {
    const CUptiResult result = answer_of("cuptiSubscribe_v2");
    const char* const holder = std::getenv("MP_FAKE_CUPTI_HOLDER");
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && holder)
        std::strncpy(params->oldSubscriberName, holder, params->oldSubscriberSize);
    return result;
}
#endif

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) { return answer_of("cuptiUnsubscribe"); }

}  // extern "C"
