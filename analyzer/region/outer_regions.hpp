#pragma once

// Regions that are not opened by a call in the program's own functions: those of the whole process,
// and those of a trainer that calls the program's methods.

#include <vector>

#include "analyzer/region/devices.hpp"
#include "analyzer/region/graph.hpp"

namespace mp::lint {

struct OuterRegion {
    std::uint32_t function = 0;
    Device device = kUnknownDevice;
    DType dtype = DType::unknown;
    bool proven = true;
    bool process_wide = false;  // else a framework's
    bool always = false;        // no caller reaches the function outside the region
    Symbol condition{};
    Symbol opener{};
    SourceSpan opened{};
};

std::vector<OuterRegion> find_outer_regions(const Graph&);

}  // namespace mp::lint
