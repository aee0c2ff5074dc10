#pragma once

#include "instrument/torch/control.hpp"
#include "instrument/torch/notes.hpp"
#include "instrument/torch/op_info.hpp"
#include "instrument/torch/parameters.hpp"
#include "instrument/torch/shadow_map.hpp"

namespace mp::twin {

// A device has no memory left, for the program or for the twin. What is ours gives way: the shadows, and the values
// that measures keep over a step. It does not come back, and what it would have shown is unknown. Safe from any thread.
class Shortage {
public:
    Shortage(Control& control, Notes& notes, ShadowMap& shadows, Parameters& parameters)
        : control_(control), notes_(notes), shadows_(shadows), parameters_(parameters) {}

    // Returns whether there was anything to give up. The caller holds no lock of the adapter.
    bool give_up();

private:
    Control& control_;
    Notes& notes_;
    ShadowMap& shadows_;
    Parameters& parameters_;
};

// Whether an op that found no memory may run again: it has done nothing else.
bool only_makes_results(const OpInfo&, const c10::OperatorHandle&, const std::vector<c10::IValue>& arguments);
// The stack as it was before the op.
void put_back(Stack&, std::size_t below, const std::vector<c10::IValue>& arguments);

}  // namespace mp::twin
