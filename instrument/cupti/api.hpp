#pragma once

#include <cupti.h>

namespace mp::cupti {

// The functions of libcupti that are used. They are found by dlsym, so we do not link against it. Null:
// this CUPTI does not have the function.
struct Api {
    decltype(&cuptiGetVersion) get_version = nullptr;
    decltype(&cuptiGetResultString) get_result_string = nullptr;
    decltype(&cuptiSubscribe) subscribe = nullptr;
#ifdef CUpti_SubscriberParams_STRUCT_SIZE  // CUDA 13.0: also returns the name of the current subscriber
    decltype(&cuptiSubscribe_v2) subscribe_v2 = nullptr;
#endif
    decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
};

}  // namespace mp::cupti
