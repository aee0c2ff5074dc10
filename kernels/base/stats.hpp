#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp {

// Where a run spends its time and what it counts: the lines of --stats. The table is one per process, and only the
// thread that goes through the stages writes it.
class Stats {
public:
    static Stats& of_process();

    void add_time(std::string_view stage, std::chrono::steady_clock::duration took);
    void add_count(std::string_view name, std::uint64_t amount);

    // "TOOL: stats: STAGE 0.012 s" for each stage, then "TOOL: stats: NAME 548" for each count, in the order in which
    // they first appeared.
    std::string text(std::string_view tool) const;

private:
    std::vector<std::pair<std::string, std::chrono::steady_clock::duration>> times_;
    std::vector<std::pair<std::string, std::uint64_t>> counts_;
};

// Returns what `work` returns and adds the time that it took to the stage. Stages do not nest.
template <typename Work>
auto timed(std::string_view stage, Work&& work) {
    struct Timer {
        std::string_view stage;
        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
        ~Timer() { Stats::of_process().add_time(stage, std::chrono::steady_clock::now() - start); }
    };
    const Timer timer{stage};
    return std::forward<Work>(work)();
}

}  // namespace mp
