#pragma once

#include <optional>
#include <vector>

#include "instrument/torch/twin.hpp"

namespace mp::twin {

// What a sampled step looks at beside the twin's own run of an op: the fp32 op on the real inputs (LOC), and
// the old values of what an in-place op changes.
class Sample {
public:
    explicit Sample(Session& session) : session_(session) {}

    // Before the real op of one that writes, after it otherwise.
    void prepare(Twin&, Call&);
    // Runs the fp32 op and measures every float result. `results`: the twin's, as its op returned them.
    void finish(Call&, const Stack& results);

private:
    struct Target {
        at::Tensor real, before, twin_before;
    };

    void keep_targets(const Call&);
    void measure(const Call&, const Stack& results, const Stack& local) const;
    void measure_sums(const Call&) const;

    Session& session_;
    std::optional<Call> local_;
    std::vector<Target> targets_;
};

}  // namespace mp::twin
