#pragma once

#include "instrument/cupti/api.hpp"
#include "runtime/trace/cupti_probe.hpp"

namespace mp::cupti {

// Asks a CUPTI that is already open: version, subscribe, unsubscribe. Fills everything but `library`.
// Whatever the functions answer, this returns.
void probe(const Api&, MpCuptiProbe&);

// Opens libcupti: the one that the process has already, then `directories` (may be null), then the
// loader's own, then the toolkit's. Fills `library`, or `message` with the loader's words. Null: none.
void* open_library(const char* directories, MpCuptiProbe&);
Api api_of(void* library);

}  // namespace mp::cupti
