#include "runtime/report/process_rows.hpp"

#include <algorithm>
#include <tuple>

namespace mp::trace {
namespace {

double fraction(std::uint64_t part, std::uint64_t rest) {
    const double whole = static_cast<double>(part) + static_cast<double>(rest);
    return whole > 0 ? static_cast<double>(part) / whole : -1;
}

}  // namespace

const ProcessTables& tables_of(const RankFacts& process) {
    static const ProcessTables none;
    return process.tables ? *process.tables : none;
}

std::vector<StepPlace> steps_of(const RunModel& model) {
    std::vector<StepPlace> places;
    for (const RankFacts& process : model.ranks) {
        for (const StepRow& row : tables_of(process).steps) places.push_back({&process, &row});
    }
    // Both point into vectors, so that addresses are in the order of the model.
    std::ranges::sort(places, {},
                      [](const StepPlace& p) { return std::tuple(p.row->step, p.process, p.row); });
    return places;
}

double fraction_of_ops(const Coverage& c) { return fraction(c.shadowed, c.unshadowed); }
double fraction_of_bytes(const Coverage& c) { return fraction(c.shadowed_bytes, c.unshadowed_bytes); }

}  // namespace mp::trace
