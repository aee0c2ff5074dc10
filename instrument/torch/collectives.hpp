#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "instrument/torch/late.hpp"
#include "instrument/torch/op_info.hpp"
#include "runtime/trace/records.hpp"

namespace mp::twin {

// Describes the collective of a c10d op from its arguments.
trace::CollectiveRecord describe_collective(const OpInfo&, const c10::OperatorHandle&, const Stack&);

// Counts, of a reduction in fp16, whether this rank's inputs are finite.
void look_at_inputs(Late&, trace::CollectiveRecord&, const OpInfo&, const Stack&);

// Replaces a Work on top of the stack, alone or behind tensors, by a HiddenWork around it. `finished` is
// called when the program has waited for it; it may be empty. `chained` becomes true when the program takes its future.
void hide_work(Stack&, std::size_t results, const std::function<void()>& finished,
               const std::shared_ptr<std::atomic<bool>>& chained);
// Waits for the Work on top of the stack.
void wait_for_work(const Stack& results);

}  // namespace mp::twin
