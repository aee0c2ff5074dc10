#pragma once

#include <cupti.h>

namespace mp::cupti {

// What is used of libcupti, found by dlsym: nothing of ours links against it. Null: this CUPTI has it not.
struct Api {
    decltype(&cuptiGetVersion) get_version = nullptr;
    decltype(&cuptiGetResultString) get_result_string = nullptr;
    decltype(&cuptiSubscribe) subscribe = nullptr;
#ifdef CUpti_SubscriberParams_STRUCT_SIZE  // CUDA 13.0: tells who holds the place
    decltype(&cuptiSubscribe_v2) subscribe_v2 = nullptr;
#endif
    decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
};

}  // namespace mp::cupti
