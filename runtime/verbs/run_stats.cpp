#include "runtime/verbs/run_stats.hpp"

#include <filesystem>

#include "kernels/base/stats.hpp"

namespace mp::trace {

void count_run(const RunModel& model) {
    Stats& stats = Stats::of_process();
    std::uint64_t bytes = 0;
    for (const RankFacts& rank : model.ranks) {
        std::error_code unknown;
        const auto size = std::filesystem::file_size(rank.path, unknown);
        if (!unknown) bytes += size;
    }
    stats.add_count("files", model.ranks.size());
    stats.add_count("bytes", bytes);
    stats.add_count("steps", static_cast<std::uint64_t>(model.step_count));
    stats.add_count("op rows", model.ops.size());
    stats.add_count("tensor rows", model.tensors.size());
}

}  // namespace mp::trace
