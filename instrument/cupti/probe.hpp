#pragma once

#include "instrument/cupti/api.hpp"
#include "runtime/trace/cupti_probe.hpp"

namespace mp::cupti {

// Queries an open CUPTI: version, subscribe, unsubscribe. Fills everything but `library`. Always returns,
// whatever the functions return.
void probe(const Api&, MpCuptiProbe&);

// Opens libcupti. Tries the one that the process has loaded, then `directories` (may be null), then the
// loader's own directories, then the toolkit's. Fills `library`, or `message` with the loader's error.
// Null: not found.
void* open_library(const char* directories, MpCuptiProbe&);
Api api_of(void* library);

}  // namespace mp::cupti
