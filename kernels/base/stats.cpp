#include "kernels/base/stats.hpp"

#include <algorithm>
#include <cstdio>

namespace mp {
namespace {

template <typename Rows, typename Amount>
void add(Rows& rows, std::string_view name, Amount amount) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == name; });
    if (row == rows.end()) {
        rows.emplace_back(name, amount);
    } else {
        row->second += amount;
    }
}

}  // namespace

Stats& Stats::of_process() {
    static Stats all;
    return all;
}

void Stats::add_time(std::string_view stage, std::chrono::steady_clock::duration took) {
    add(times_, stage, took);
}

void Stats::add_count(std::string_view name, std::uint64_t amount) { add(counts_, name, amount); }

std::string Stats::text(std::string_view tool) const {
    const std::string start = std::string(tool) + ": stats: ";
    std::string out;
    for (const auto& [stage, took] : times_) {
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, "%.3f s", std::chrono::duration<double>(took).count());
        out += start + stage + " " + seconds + "\n";
    }
    for (const auto& [name, amount] : counts_) out += start + name + " " + std::to_string(amount) + "\n";
    return out;
}

}  // namespace mp
