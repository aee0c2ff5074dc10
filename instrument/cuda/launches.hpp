#pragma once

namespace mp::raw {

// Subscribes to CUPTI, once per process. Does nothing in a process that is not observed.
void watch_launches() noexcept;

}  // namespace mp::raw
