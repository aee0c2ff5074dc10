#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "instrument/torch/node_pointer.hpp"
#include "instrument/torch/parts.hpp"

namespace mp::twin {

struct RegroupedSum;
struct ThreadState;

// Makes the twin add gradients in the order of the fp32 run where casts regroup them (cast_graph.hpp). When a backward
// starts, the producers of such a sum get a hook that adds the shadow of their output to a running total, and the
// consumer gets one that binds the total to the gradient. The hooks change shadows only. They and the totals end with
// the engine's task, also after an exception.
//
// Safe from any thread. A node that another backward runs too gets no hook, because the engine reads the list of hooks
// without a lock; such sums are counted.
class GradientSums {
public:
    explicit GradientSums(Parts& parts) : parts_(parts) {}

    // Called when a node begins, before its own work.
    void node_begins(ThreadState&);

private:
    class Backward;
    class AddToTotals;
    class BindTotals;
    using Graph = std::unordered_set<torch::autograd::Node*>;
    struct Placed {  // a hook in the graph
        WeakNode node;
        const void* hook;
    };

    void begin(const Graph&);
    void end(const Backward&) noexcept;
    // The private functions below are called under the lock.
    std::vector<std::pair<LayerId, const char*>> place_hooks(const std::shared_ptr<Backward>&);
    const char* obstacle(const RegroupedSum&, const Backward&) const;
    bool runs_elsewhere(torch::autograd::Node*, const Backward* except) const;

    Parts& parts_;
    std::atomic<std::uint64_t> ended_{0};  // backwards
    std::mutex mutex_;  // protects the members below, and the placing and removing of hooks
    std::vector<const Backward*> running_;
    std::vector<Placed> leftover_;  // hooks of ended backwards, at nodes that another one still runs
};

}  // namespace mp::twin
