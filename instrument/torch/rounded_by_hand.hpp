#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "instrument/torch/compat.hpp"
#include "instrument/torch/masters.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// Finds fp32 parameters that a program rounds to 16 bits by hand: a sampled step ends with a twin that needs more
// bits, and the next sampled step begins with 16-bit values.
// Values of a 16-bit checkpoint do so once, and where a step moves by few bits, the twin needs no more. The parameter
// may also be the rounding of a master, in whose memory the other bits are. Only on the CPU, where memory can be
// searched. One user at a time.
class RoundedByHand {
public:
    explicit RoundedByHand(Masters& masters) : masters_(masters) {}

    // Before the optimizer: a parameter, and some of its values and of its twin's, in fp32.
    void begin(const std::string& name, const at::Tensor&, const at::Tensor& some,
               const at::Tensor& twin_some);
    // Looks for the masters of those that hold 16-bit values again.
    void search();
    // After it, with the change of the same values in the record: what is found out. A change that brings back bits
    // which were rounded away for the forward is not an update and is not counted.
    void end(trace::TensorRecord&, const at::Tensor& some, const at::Tensor& twin_some);

private:
    struct State {
        std::optional<at::ScalarType> type;  // the 16-bit format that holds all values; none: there is none
        bool twin_is_wide = false;           // its twin had more bits when the step began
        bool widened = true;                 // and when it ended
        bool again = false;                  // 16-bit values, after a step that ended with more
        std::uint64_t mastered = 0;
    };

    Masters& masters_;
    std::unordered_map<std::string, State> states_;  // by name of the parameter
    std::vector<std::string> sought_;                // beside the tensors, rounded
    std::vector<at::Tensor> low_;
};

}  // namespace mp::twin
