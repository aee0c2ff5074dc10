#pragma once

#include <optional>

#include "instrument/torch/measure.hpp"
#include "instrument/torch/shadow_arguments.hpp"

namespace mp::twin {

// The measurements of one call in a sampled step, apart from the twin's own run: the fp32 op on the real inputs (LOC),
// and the old values of the tensors that an in-place op changes. Lives as long as the call, on its thread.
class Sample {
public:
    Sample(Parts& parts, ShadowArguments& arguments) : parts_(parts), arguments_(arguments) {}

    // Called before the real op if the op writes its arguments, after it otherwise.
    void prepare(Call&);
    // Runs the fp32 op and measures every float result. `results`: of the twin's op.
    void finish(Call&, const Stack& results);

private:
    void keep_targets(Call&);
    void measure(const Call&, const Stack& results, const Stack& local) const;
    void measure_sums(const Call&) const;

    Parts& parts_;
    ShadowArguments& arguments_;
    std::optional<Call> local_;
};

}  // namespace mp::twin
