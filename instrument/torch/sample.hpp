#pragma once

#include <optional>
#include <vector>

#include "instrument/torch/measure.hpp"
#include "instrument/torch/shadow_arguments.hpp"

namespace mp::twin {

// What a sampled step measures of one call beside the twin's own run: the fp32 op on the real inputs (LOC), and the old
// values of what an in-place op changes. Lives as long as the call, on its thread.
class Sample {
public:
    Sample(Ledger& ledger, ShadowArguments& arguments) : ledger_(ledger), arguments_(arguments) {}

    // Before the real op of one that writes, after it otherwise.
    void prepare(Call&);
    // Runs the fp32 op and measures every float result. `results`: the twin's, as its op returned them.
    void finish(Call&, const Stack& results);

private:
    struct Target {
        at::Tensor real, before, twin_before;
    };

    void keep_targets(const Call&);
    void measure(const Call&, const Stack& results, const Stack& local) const;
    void measure_sums(const Call&) const;

    Ledger& ledger_;
    ShadowArguments& arguments_;
    std::optional<Call> local_;
    std::vector<Target> targets_;
};

}  // namespace mp::twin
