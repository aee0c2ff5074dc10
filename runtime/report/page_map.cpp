#include "runtime/report/page_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/fold/parts.hpp"

namespace mp::trace {
namespace {

constexpr std::string_view kUnfit = "\"&<>\\";

constexpr bool fits(char c) { return kUnfit.find(c) == std::string_view::npos; }
constexpr std::size_t count_levels() {
    std::size_t n = 0;
    for (char c = '#'; c <= '~'; ++c) n += fits(c);
    return n;
}

constexpr std::size_t kLevels = count_levels();

constexpr std::array<char, kLevels> kAlphabet = [] {
    std::array<char, kLevels> all{};
    std::size_t n = 0;
    for (char c = '#'; c <= '~'; ++c) {
        if (fits(c)) all[n++] = c;
    }
    return all;
}();

std::string packed(const std::vector<Cell>& cells, float Cell::* measure, Scale scale) {
    std::string out;
    bool any = false;
    for (const Cell& cell : cells) {
        out += cell.nonfinite ? kNonFinite : level_of(static_cast<double>(cell.*measure), scale);
        any |= out.back() != kNotMeasured;
    }
    return any ? out : std::string();
}

std::vector<Cell> merged(const std::vector<Cell>& cells, std::size_t columns, std::size_t merge) {
    std::vector<Cell> out(columns);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        keep_worse(out[i / merge], cells[i]);
    }
    return out;
}

}  // namespace

std::string_view level_alphabet() { return {kAlphabet.data(), kAlphabet.size()}; }

char level_of(double value, Scale scale) {
    if (!std::isfinite(value)) return kNonFinite;
    if (value < 0) return kNotMeasured;
    if (value <= scale.low) return kAlphabet.front();
    const double share = std::log(value / scale.low) / std::log(scale.high / scale.low);
    const auto level = static_cast<std::size_t>(std::lround(share * static_cast<double>(kLevels - 1)));
    return kAlphabet[std::min(level, kLevels - 1)];
}

PackedMap pack_map(const RunModel& model, std::size_t cells) {
    std::size_t columns = 0;
    for (const LayerSteps& row : model.map) columns = std::max(columns, row.cells.size());
    PackedMap out;
    out.columns = columns;
    while (out.columns > 1 && out.columns * model.map.size() > cells) {
        out.merged *= 2;
        out.columns = (columns + out.merged - 1) / out.merged;
    }
    for (const LayerSteps& row : model.map) {
        const std::vector<Cell> worst = merged(row.cells, out.columns, out.merged);
        PackedRow packed_row{.layer = row.layer,
                             .phase = row.phase,
                             .total = packed(worst, &Cell::cum_phi, kPhiScale),
                             .introduced = packed(worst, &Cell::loc_phi, kPhiScale),
                             .flush = packed(worst, &Cell::flush, kFlushScale),
                             .nonfinite = false};
        packed_row.nonfinite =
            std::any_of(worst.begin(), worst.end(), [](const Cell& c) { return c.nonfinite > 0; });
        out.rows.push_back(std::move(packed_row));
    }
    return out;
}

}  // namespace mp::trace
