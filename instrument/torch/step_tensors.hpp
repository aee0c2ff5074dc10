#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "instrument/torch/parts.hpp"
#include "runtime/trace/dtype_places.hpp"

namespace mp::twin {

// Measures the named tensors of a step, and records which dtypes they have. Called by the step clocks; `place`
// is safe from any thread.
class StepTensors {
public:
    explicit StepTensors(Parts& parts) : parts_(parts) {}

    // Everything is measured in steps 0, 1, 2, 4, 8, 16, 32 and every 32nd from there, and in each step of the modes
    // local and step. A limit of time (--overhead) leaves some of these out.
    bool is_sampled(std::int64_t step) const;

    void begin_step() { gradients_.clear(); }
    // Before the optimizer moves the weights: gradients, and copies of the values that may move.
    void before_optimizer();
    // Gradients only, for steps whose end is not announced. Gradients that are measured already stay.
    enum class Gradients : std::uint8_t {
        none,
        of_twin,       // if this step compares tensors with twins
        of_step,       // if this step measures tensors
        without_twin,  // in every mode but local
    };
    void measure_gradients(Gradients);
    // The gradients of a step that does not end, as far as they are not finite.
    std::vector<trace::TensorRecord> lost_gradients();
    // Parameters, optimizer state, buffers and gradients, as they are after the step.
    void end_step(trace::StepRecord&);

    // Adds a dtype that the adapter cannot see itself: that of a checkpoint's tensors.
    void place(trace::DTypePlace);
    // The places of checkpoints since the last record. Empty if there are none.
    std::vector<trace::DTypePlace> take_checkpoints();
    // The dtypes of named tensors and checkpoints, as they are now.
    void take_places(trace::StepRecord&);
    // Adds those of ops and collectives. Drops all if they are as in the record before. The record is complete.
    void put_places(trace::StepRecord&);

private:
    bool has_twin() const;
    bool measures() const;
    ShadowMap* shadows() { return has_twin() ? &parts_.shadows : nullptr; }

    Parts& parts_;
    std::vector<trace::TensorRecord> gradients_;  // measured before the step, while they exist
    trace::DTypePlaces places_;
    std::mutex mutex_;  // of checkpoints_
    std::vector<trace::DTypePlace> checkpoints_;
};

}  // namespace mp::twin
