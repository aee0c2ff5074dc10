#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "instrument/torch/parts.hpp"
#include "instrument/torch/step_tensors.hpp"
#include "runtime/trace/sampling_budget.hpp"

namespace mp::twin {

// Ends steps and writes the record of each. Three callers end steps: the shim with hooks on optimizers, the program
// with mptrace_step, and InferredClock from the ops of the program. What a CUDA graph records is not a step. Safe from
// any thread: one lock for the whole end of a step. It is taken before every lock of the parts, and never during an op.
class StepClock {
public:
    // Begins step 0.
    explicit StepClock(Parts&);

    void before_step();
    void after_step(std::int64_t optimizer, bool skipped, double scale);
    // A step without optimizer hooks ends.
    void end_step(StepTensors::Gradients, bool skipped, double scale);
    // The program ends: writes the steps whose figures were not there yet (`wait`: waits for them), and what was seen
    // of the step that did not end.
    void finish(bool wait);
    // Writes the steps whose figures were not there yet.
    void write_late();
    // A backward pass starts at `root`. It accumulates gradients or gives them back.
    void begin_backward(const at::Tensor& root, bool accumulates);

    StepTensors& tensors() { return tensors_; }

private:
    void begin_step();
    bool takes_sample(std::int64_t step);
    void tell_samples();
    void write(trace::StepRecord& complete);
    void put_unfinished();
    void write_unfinished(trace::StepRecord& rest);
    void end_step_locked(std::int64_t optimizer, bool skipped, double scale);

    Parts& parts_;
    StepTensors tensors_;
    std::mutex mutex_;
    std::int64_t last_record_ns_ = 0;
    trace::SamplingBudget budget_;
    std::int64_t began_ns_ = 0;  // the step
    std::atomic<bool> forecast_said_{false};
};

}  // namespace mp::twin
