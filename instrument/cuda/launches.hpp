#pragma once

namespace mp::raw {

// Subscribes to CUPTI, once per process. Does nothing in a process that is not observed.
void watch_launches() noexcept;
// Leaves CUPTI to others.
void stop_watching() noexcept;

}  // namespace mp::raw
