#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/numerics/divergence.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// Whether two records belong together: the same op, reduction, dtype and group.
bool same_kind(const trace::CollectiveRecord&, const trace::CollectiveRecord&);
// Adds the figures of a low-precision reduction against the fp32 reduction of the same inputs.
void add_figures(trace::CollectiveRecord&, const Divergence&);

// The collectives of the step under way, one record per (op, reduction, dtype, group). Safe from any thread; the
// functions passed to `finish_later` are called without the lock.
class CollectiveRecords {
public:
    void count(trace::CollectiveRecord);
    void add_figures(const trace::CollectiveRecord& like, const Divergence&);
    // `finish` measures a reduction. It is called when the step ends, and does nothing if the program has waited for
    // the reduction before. DDP never waits: it chains futures, which sets `chained`.
    void finish_later(std::function<void()> finish, std::shared_ptr<const std::atomic<bool>> chained);
    void finish_now();
    // Called when a backward begins while no other runs: DDP's last one has ended with all that it chained, and this
    // one writes its gradients into the same memory.
    void finish_chained();

    // Returns the records of the step and clears them.
    std::vector<trace::CollectiveRecord> take();
    // Whether this process has ever run a collective.
    bool seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

private:
    struct Unfinished {
        std::function<void()> finish;
        std::shared_ptr<const std::atomic<bool>> chained;
    };

    trace::CollectiveRecord* find(const trace::CollectiveRecord& like);

    std::mutex mutex_;
    std::vector<trace::CollectiveRecord> records_;
    std::vector<Unfinished> unfinished_;
    std::atomic<bool> seen_{false};
};

}  // namespace mp::twin
