#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/fold/run_model.hpp"

// The map of layers x steps as the page stores it: one character per cell. That is small, needs no decompression in
// the browser, and is readable in the file.

namespace mp::trace {

// A measure's range, divided into kLevels steps of equal ratio, so a cell is accurate to about a tenth of its value.
struct Scale {
    double low = 0;   // the first level: this and everything below
    double high = 0;  // the last level: this and everything above
};
inline constexpr Scale kPhiScale{.low = 1e-2, .high = 1e6};
inline constexpr Scale kFlushScale{.low = 1e-6, .high = 1};

inline constexpr char kNotMeasured = ' ';
inline constexpr char kNonFinite = '!';
// Printable ASCII that neither JSON nor HTML escapes; the page reads it from its data.
std::string_view level_alphabet();
char level_of(double value, Scale);  // of a value >= 0; below 0: kNotMeasured; a NaN or infinity: kNonFinite

struct PackedRow {
    std::string_view layer;
    Phase phase = Phase::unknown;
    std::string total, introduced, flush;  // one character per column; empty: nothing was measured
    bool nonfinite = false;                // somewhere in it
};

struct PackedMap {
    std::size_t columns = 0;
    std::size_t merged = 1;  // columns of the model in one column of the map, which shows the worst
    std::vector<PackedRow> rows;
};

// Merges neighbouring columns until there are at most `cells` cells.
PackedMap pack_map(const RunModel&, std::size_t cells = 1'100'000);

}  // namespace mp::trace
