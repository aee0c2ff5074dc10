#pragma once

#include <cstdint>

// The interface between `mp-trace doctor` and libmptrace_cupti_probe.so, which it loads by path. CUPTI serves
// one subscriber per process. The probe subscribes and unsubscribes at once, to find out whether the place is
// free and who holds it.

enum MpCuptiState : std::int32_t {
    mp_cupti_absent = 0,      // no libcupti could be opened
    mp_cupti_free = 1,        // subscribed, and unsubscribed again
    mp_cupti_held = 2,        // another subscriber, a debugger or a profiler holds it
    mp_cupti_refused = 3,     // `call` returned `code`
    mp_cupti_incomplete = 4,  // a libcupti without the functions that are needed; `message` names one
};

// Texts are null-terminated, and truncated to the size of their array.
struct MpCuptiProbe {
    std::uint32_t size;     // set by the caller to sizeof(MpCuptiProbe)
    std::int32_t state;     // MpCuptiState
    std::int32_t code;      // CUptiResult of `call`; 0 otherwise
    std::uint32_t version;  // from cuptiGetVersion: 130000 for CUDA 13.0; 0: not known
    char library[512];      // what was opened
    char call[64];          // the call that failed
    char holder[128];       // the other subscriber's name, where CUPTI provides it (CUDA 13.0)
    char message[256];      // CUPTI's text for `code`, or the loader's
};

// Fills the struct. `directories` (separated by ':', may be null) are searched before the loader's own.
// Returns 0, or -1 when the struct is not the one this library was built with.
extern "C" int mptrace_cupti_probe(MpCuptiProbe* probe, const char* directories);
using MpCuptiProbeFunction = int (*)(MpCuptiProbe*, const char*);
