#pragma once

#include <string>

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The dtypes of what a step computes and communicates, for the dtype map. Products of fp32 that round their inputs are
// in TF32. Not safe from several threads at once.
class DTypePlaces {
public:
    // `any_phase`: also ops of no phase. In a program of torch these prepare data; others may name no phase at all.
    explicit DTypePlaces(bool any_phase = false) : any_phase_(any_phase) {}

    // Adds those of the step's ops and collectives to the places that it has. If all are as in the step before, the
    // step has none.
    void put(StepRecord& step) {
        for (const OpRecord& op : step.ops)
            if (any_phase_ || op.phase == Phase::forward || op.phase == Phase::backward)
                step.places.push_back({TensorRole::activation, op.layer, op.phase,
                                       op.tf32 > 0 ? DType::tf32 : op.dtype, op.calls, op.elements});
        for (const CollectiveRecord& c : step.collectives)
            step.places.push_back({TensorRole::collective, c.op, Phase::unknown, c.dtype, c.calls, 0});
        std::string key;
        for (const DTypePlace& p : step.places)
            key += p.layer + '\n' + static_cast<char>(p.role) + static_cast<char>(p.phase) +
                   static_cast<char>(p.dtype);
        if (key == last_)
            step.places.clear();
        else
            last_ = std::move(key);
    }

private:
    bool any_phase_;
    std::string last_;
};

}  // namespace mp::trace
