#pragma once

#include "instrument/torch/call.hpp"
#include "instrument/torch/control.hpp"
#include "instrument/torch/coverage_counters.hpp"
#include "instrument/torch/shadow_map.hpp"

namespace mp::twin {

// Makes the arguments of the twin's op from those of the real op: shadows for tensors, fp32 for dtypes. Without state
// of its own; safe from any thread.
class ShadowArguments {
public:
    ShadowArguments(const Control& control, const CurrentStep& now, CoverageCounters& coverage,
                    ShadowMap& shadows)
        : control_(control), now_(now), coverage_(coverage), shadows_(shadows) {}

    // Sets `shadow` of the call, and what the op writes. Tensors without a shadow get one from the real values.
    void prepare(Call&);

private:
    IValue convert(Call&, const Argument&, const IValue&);
    at::Tensor convert_tensor(Call&, const Argument&, const at::Tensor&);
    at::Tensor shadow_of_float(Call&, const Argument&, const at::Tensor&);
    at::Tensor shadow_of_integer(Call&, const Argument&, const at::Tensor&);
    at::Tensor own_integers(Call&, const at::Tensor&, const ShadowMap::Lookup&);
    bool moves_floats_as_bytes(const Call&);
    bool computed_outside(ShadowMap::Found, const Argument&, const at::Tensor&) const;

    const Control& control_;
    const CurrentStep& now_;
    CoverageCounters& coverage_;
    ShadowMap& shadows_;
};

}  // namespace mp::twin
