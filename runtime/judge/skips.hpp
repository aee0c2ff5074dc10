#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/fold/run_model.hpp"

namespace mp::trace {

// Why a step was skipped.
enum class SkipCause : std::uint8_t {
    unknown,             // nothing non-finite was observed
    scale_too_high,      // finite at a lower loss scale; normal for GradScaler
    forward_overflow,    // a forward value left the format; the loss scale cannot help
    reduction_overflow,  // local gradients are finite, their sum is not, at a scale that steps were taken at
    invalid_op,          // 0/0, inf-inf, log of a negative ...: the twin has it too
    bad_data,            // the inputs were not finite
};
std::string_view name_of(SkipCause);  // "scale too high", ...

struct SkipVerdict {
    Step step;
    SkipCause cause = SkipCause::unknown;
    std::string parameter;  // the first parameter whose gradient is not finite; empty: unknown
    std::string layer, op;  // where the first non-finite value was made
    Rank rank;
    int device = -1;  // as in Finding
    double loss_scale = 0;
    bool ranks_disagree = false;
    bool scale_helps = false;     // a sum over ranks overflowed that fits at a lower loss scale
    bool also_in_twin = false;    // an invalid operation in fp32 too
    bool by_elimination = false;  // no operation was seen that made a non-finite value
    std::string why;              // one sentence with the figures
};

SkipVerdict verdict_of(const SkipFacts&);
// " of the gradients of fc1.weight, fc2.weight and 3 more"; empty without names.
std::string of_gradients(const std::vector<std::string>& names);
// The verdicts on the skips of a run, in the order of their steps.
std::vector<SkipVerdict> verdicts_of(const std::vector<SkipFacts>&);
// The same facts as a run without a twin has them.
std::vector<SkipFacts> without_twin(std::vector<SkipFacts>);

}  // namespace mp::trace
