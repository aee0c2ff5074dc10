#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/report/sections.hpp"

namespace mp::trace {

int lowest_exponent(const LayerExponents& e) {
    constexpr int kBias = 127;  // bin k holds [2^(k-127), 2^(k-126))
    return static_cast<int>(e.exponents.lowest) - kBias;
}

std::vector<const LayerExponents*> exponents_by_depth(const RunModel& model) {
    std::map<std::pair<Phase, std::string_view>, std::size_t> depth;
    for (const OpSum& op : model.ops) depth.try_emplace({op.total.phase, op.total.layer}, depth.size());
    std::vector<std::pair<std::tuple<std::size_t, DType>, const LayerExponents*>> placed;
    for (const LayerExponents& e : model.exponents) {
        const auto at = depth.find({e.phase, e.layer});
        if (at != depth.end()) placed.emplace_back(std::tuple(at->second, e.dtype), &e);
    }
    std::ranges::sort(placed, {}, [](const auto& p) { return p.first; });
    std::vector<const LayerExponents*> out;
    for (const auto& [place, exponents] : placed) out.push_back(exponents);
    return out;
}

Json exponents_entry(const LayerExponents& e) {
    return {{"dtype", name_of(e.dtype)}, {"lowest", lowest_exponent(e)}, {"counts", e.exponents.counts}};
}

}  // namespace mp::trace
